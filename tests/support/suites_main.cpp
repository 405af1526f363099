// The main() of programs of tests without windows.
#include "tests/support/suites.h"

int main(int argc, char** argv) {
    return cutaway::testing::suitesMain(argc, argv, [](int& count, char** values) -> std::unique_ptr<QCoreApplication> {
        return std::make_unique<QCoreApplication>(count, values);
    });
}
