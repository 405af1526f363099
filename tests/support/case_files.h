#pragma once
// Cases of passes on graphs in text form, tests/cases/**/*.txt; cases_test.cpp says what a case is.
#include <QString>

#include "engine/passes/pass_runner.h"

namespace cutaway::testing {

struct Case {
    QString file, name, head;  // head: the comment lines as written
    QString pass, numbers, idle, fails, counts;
    CompileRequest options;
    QString before, after;  // empty `after`: nothing changes
};

/// The text above the first case, and the cases.
struct CaseFile {
    QString path, head;
    std::vector<Case> cases;
};
/// All files that have cases of passes, by path.
std::vector<CaseFile> readCaseFiles();

/// The options that the words of a line `options` of the file mean; cases_test.cpp says which there are.
CompileRequest readOptions(const QString& words, const QString& file);

/// A graph of a case: the text of `def before` or `def after`.
Result<Snapshot> parseCase(QString text, const char* function);
/// A pass of the pipeline by its name, or by "stage.name" where several stages have one of that name; else null.
const Pass* findPass(const QString& name);

}  // namespace cutaway::testing
