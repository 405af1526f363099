// The main() of programs of tests with windows.
#include <QApplication>

#include "tests/support/suites.h"

int main(int argc, char** argv) {
    return cutaway::testing::suitesMain(argc, argv, [](int& count, char** values) -> std::unique_ptr<QCoreApplication> {
        auto application = std::make_unique<QApplication>(count, values);
        QCoreApplication::setAttribute(Qt::AA_Use96Dpi);  // sizes do not hang on the screen, as with QTEST_MAIN
        return application;
    });
}
