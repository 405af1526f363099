#include "tests/support/suites.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "engine/support/near_names.h"

namespace cutaway::testing {

namespace {

// Made when the first file registers: nothing orders the files of a program before main.
std::vector<Suite>& suites() {
    static std::vector<Suite> all;
    return all;
}
std::vector<Role>& roles() {
    static std::vector<Role> all;
    return all;
}

void print(std::FILE* out, std::string_view text) { std::fwrite(text.data(), 1, text.size(), out); }

void list(std::string_view program) {
    print(stdout, program);
    print(stdout, " SUITE [QtTest arguments] runs one of\n");
    for (const Suite& suite : suites()) {
        print(stdout, "  ");
        print(stdout, suite.name);
        print(stdout, "\n");
    }
}

int noSuch(std::string_view program, std::string_view given) {
    std::vector<std::string_view> names;
    for (const Suite& suite : suites()) names.push_back(suite.name);
    std::string text = std::string(program) + ": no suite '" + std::string(given) + "'";
    const auto near = nearNames(given, names);
    for (size_t i = 0; i < near.size(); ++i) text += (i == 0 ? "; near: " : ", ") + std::string(near[i]);
    print(stderr, text + "; without arguments it lists its suites\n");
    return 2;
}

}  // namespace

bool addSuite(const Suite& suite) {
    auto& all = suites();
    all.insert(std::ranges::lower_bound(all, suite.name, {}, &Suite::name), suite);
    return true;
}
bool addRole(const Role& role) {
    roles().push_back(role);
    return true;
}

int suitesMain(int argc, char** argv, std::unique_ptr<QCoreApplication> (*application)(int& argc, char** argv)) {
    std::string_view program = argc > 0 ? argv[0] : "";
    program.remove_prefix(program.rfind('/') + 1);
    if (argc < 2) {
        list(program);
        return 0;
    }
    const std::string_view given = argv[1];
    for (const Role& role : roles())
        if (role.argument == given) return role.run(argc, argv);
    const auto found = std::ranges::find(suites(), given, &Suite::name);
    if (found == suites().end()) return noSuch(program, given);
    found->prepare();
    const auto running = application(argc, argv);
    QStringList arguments = running->arguments();
    arguments.removeAt(1);
    return found->run(arguments);
}

}  // namespace cutaway::testing
