// cutaway-layout: reads one layout problem on stdin, writes its answer on stdout (format: ui/graph/layout_problem.h). A
// process of its own, so that it can be killed. Exit status: 0 answered, 1 bad request, 2 dot failed.
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <string_view>

#include "engine/support/sanitized.h"
#include "ui/graph/layout_problem.h"

namespace {

/// This process ends with the one that started it or, should that be gone already, by its limits.
void limitSelf() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit seconds{120, 120};
    setrlimit(RLIMIT_CPU, &seconds);
    const rlimit bytes{4ul << 30, 4ul << 30};
    if (!cutaway::kSanitized) setrlimit(RLIMIT_AS, &bytes);
    const rlimit noCore{0, 0};
    setrlimit(RLIMIT_CORE, &noCore);
}

int run(int argc, char** argv) {
    const bool plain = argc == 2 && std::string_view(argv[1]) == "--plain";
    if (argc > 2 || (argc == 2 && !plain)) {
        std::cerr << "usage: cutaway-layout [--plain] < request > answer\n"
                     "  --plain  our own layered layout instead of Graphviz dot\n";
        return 1;
    }
    limitSelf();
    std::ios::sync_with_stdio(false);
    const auto problem = cutaway::ui::readProblem(std::cin);
    if (!problem) {
        std::cerr << "cutaway-layout: " << problem.error().where << ": " << problem.error().message << "\n";
        return 1;
    }
    if (plain) {
        std::cout << cutaway::ui::writeAnswer(cutaway::ui::layoutPlainly(*problem));
        return 0;
    }
    const auto answer = cutaway::ui::layoutWithDot(*problem);
    if (!answer) {
        std::cerr << "cutaway-layout: " << answer.error().message << "\n";
        return 2;
    }
    std::cout << cutaway::ui::writeAnswer(*answer) << std::flush;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "cutaway-layout: " << error.what() << "\n";
        return 2;
    }
}
