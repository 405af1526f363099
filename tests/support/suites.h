#pragma once
// Suites of tests register themselves. A program holds those of one theme and runs one of them, in a process of its
// own:
//   build/release/tests/rewrite_tests cases_test [QtTest arguments]
#include <QtTest>
#include <string_view>

namespace cutaway::testing {

/// The name of a suite, in CTest and on the command line: its file's, without folders and ending.
consteval std::string_view suiteNameOf(std::string_view file) {
    file.remove_prefix(file.rfind('/') + 1);
    return file.substr(0, file.rfind('.'));
}

struct Suite {
    std::string_view name;
    void (*prepare)();                         // before there is an application: a class may have a static initMain
    int (*run)(const QStringList& arguments);  // the program's name, and what QtTest is to read
};
/// Something that this program does in place of a suite, where a test starts its own program again.
struct Role {
    std::string_view argument;  // the first
    int (*run)(int argc, char** argv);
};
/// Called before main; the result is for the macros.
bool addSuite(const Suite& suite);
bool addRole(const Role& role);

/// Runs the suite that the first argument names, with an application around it; without arguments lists them. The exit
/// status: QtTest's; 2 if there is no such suite.
int suitesMain(int argc, char** argv, std::unique_ptr<QCoreApplication> (*application)(int& argc, char** argv));

template <typename Test>
int runSuite(const QStringList& arguments) {
    Test test;
    return QTest::qExec(&test, arguments);
}

}  // namespace cutaway::testing

/// In the suite's file, after the class.
#define CUTAWAY_SUITE(Test)                                                                                       \
    [[maybe_unused]] static const bool added##Test =                                                              \
        cutaway::testing::addSuite({cutaway::testing::suiteNameOf(__FILE__), QTest::Internal::callInitMain<Test>, \
                                    cutaway::testing::runSuite<Test>});
/// `function` takes what main takes, there is no application.
#define CUTAWAY_ROLE(argument, function) \
    [[maybe_unused]] static const bool added##function = cutaway::testing::addRole({argument, function});
