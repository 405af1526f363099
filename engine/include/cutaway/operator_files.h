#pragma once
// Operators that files define: in the user's folder, and those that come with the program. A file holds definitions as
// a file of rules does ("operator mylib::scale(Tensor x) -> Tensor", "  computes", and statements).
#include <string>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

/// A folder whose files *.txt define operators, or such a file. CUTAWAY_OPERATORS names some, with ":" between; only
/// absolute paths. No folder is ever one because a model lies there.
struct OperatorFolder {
    std::string path, from;  // from: "CUTAWAY_OPERATORS", "user" or "Cutaway"
    std::string problem;     // why nothing is read from there; empty if it is
};
std::vector<OperatorFolder> operatorFolders();

struct DefinedOperator {
    std::string name, text;  // "mylib.scale.default"; the definition
    std::string file, from;
};
/// Reads the folders, of which the first that defines a name counts, and makes that what names mean in files that are
/// opened from now on. Opening a file does this. `remarks`: a sentence for each file or definition that is left out.
std::vector<DefinedOperator> loadDefinedOperators(std::vector<std::string>* remarks = nullptr);

/// Errors of the definitions in a text, with their line; `name` says whose text it is.
Result<std::vector<DefinedOperator>> checkOperators(const std::string& text, const std::string& name);

/// What a definition of the operator that a node calls begins with: its schema, as far as the file tells it, and
/// statements to write on; or the definition that it has. Errors: no call, or one of an operator of the tables.
Result<std::string> definitionToStart(Session& session, const Place& place, NodeKey node);
/// The same for each operator of the open model that nothing defines.
Result<std::vector<std::string>> definitionsToStart(Session& session);

/// Writes a definition into the user's folder, as its name and ".txt", in place of the one that was written so
/// before. Errors: checkOperators', a text of more than one definition, a folder that cannot be written.
Result<std::string> saveOperator(const std::string& text);

}  // namespace cutaway
