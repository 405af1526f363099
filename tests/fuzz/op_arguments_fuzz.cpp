// Fuzzing of arguments: op_arguments_fuzz [--from N] [--count N] [--seconds S] [--op NAME] [--samples FILE] [--jobs N]
// [--compiled] [--compiler PROGRAM] [--memory BYTES] [--call TEXT] [--list]. FILE has calls as the corpus has, in place
// of the samples of all ops. Needs no clang; the preset `asan` makes it see reads outside and leaks.
#include <cstdio>
#include <cstring>

#include "tests/fuzz/argument_runs.h"
#include "tests/support/argument_check.h"

using namespace cutaway;

namespace {

const char* outcomeText(testing::CallReport::Outcome outcome) {
    switch (outcome) {
        case testing::CallReport::Outcome::RefusedByTypes: return "refused by types";
        case testing::CallReport::Outcome::RefusedWhenRun: return "refused when run";
        case testing::CallReport::Outcome::Large: return "too large to run";
        case testing::CallReport::Outcome::Ran: return "ran";
    }
    return "";
}

/// One call in this process, for a debugger.
int check(const testing::CallText& call) {
    const auto report = testing::checkCall(call, [](const char* stage) { std::fprintf(stderr, "%s\n", stage); });
    std::printf("%s: %s %s\n", call.text().c_str(), outcomeText(report.outcome), report.refusal.c_str());
    for (const std::string& problem : report.problems) std::printf("    %s\n", problem.c_str());
    return report.problems.empty() ? 0 : 1;
}

std::string typesOf(const std::vector<Tensor>& results) {
    std::string text;
    for (const Tensor& result : results) {
        TensorType type;
        type.dtype = result.dtype();
        type.sizes = toSymDims(result.sizes());
        type.strides = result.defined() ? toSymDims(contiguousStrides(result.sizes())) : SymDims{};
        text += (text.empty() ? "" : "; ") + (result.defined() ? type.text() : "-");
    }
    return text;
}
/// "outcome \t call \t refusal, or the results' types" of each mutation, for tests/scripts/compare_arguments.py.
void list(const testing::ArgumentMutations& mutations, uint64_t from, uint64_t count) {
    for (uint64_t seed = from; seed < from + count; ++seed) {
        const testing::CallText call = mutations.at(seed);
        const auto report = testing::checkCall(call, [](const char*) {});
        std::printf(
            "%s\t%s\t%s\n", outcomeText(report.outcome), call.text().c_str(),
            (report.results.empty() ? report.refusal.substr(0, report.refusal.find('\n')) : typesOf(report.results))
                .c_str());
        std::fflush(stdout);
    }
}

void say(const fuzz::ArgumentFailure& failure) {
    std::printf("\n%s in %s, mutation %llu: %s\n    %s\n", failure.kind.c_str(), failure.stage.c_str(),
                static_cast<unsigned long long>(failure.seed), failure.call.c_str(), failure.detail.c_str());
    std::fflush(stdout);
}

int summarize(const fuzz::ArgumentTally& tally) {
    std::printf("\n%llu calls: %llu refused by types, %llu refused when run, %llu too large to run, %llu ran\n",
                static_cast<unsigned long long>(tally.calls), static_cast<unsigned long long>(tally.refusedByTypes),
                static_cast<unsigned long long>(tally.refusedWhenRun), static_cast<unsigned long long>(tally.large),
                static_cast<unsigned long long>(tally.ran));
    for (const auto& [signature, failures] : tally.failures)
        std::printf("%6zu x %s\n         %s\n", failures.size(), signature.c_str(), failures.front().call.c_str());
    std::printf("%zu kinds of failures\n", tally.failures.size());
    return tally.failures.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    fuzz::ArgumentRuns runs;
#if defined(__SANITIZE_ADDRESS__)
    runs.memoryBytes = 0;
#endif
    std::string op, call, samples;
    bool listing = false;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const bool alone = option == "--compiled" || option == "--list";
        if (!alone) ++i;
        const char* value = i < argc ? argv[i] : "";
        if (option == "--compiled") runs.compiled = true;
        else if (option == "--list") listing = true;
        else if (option == "--from") runs.from = std::strtoull(value, nullptr, 10);
        else if (option == "--count") runs.count = std::strtoull(value, nullptr, 10);
        else if (option == "--seconds") {
            runs.seconds = std::strtod(value, nullptr);
            runs.count = std::max<uint64_t>(runs.count, uint64_t{1} << 40);
        } else if (option == "--call-seconds") runs.callSeconds = std::strtod(value, nullptr);
        else if (option == "--op") op = value;
        else if (option == "--samples") samples = value;
        else if (option == "--jobs") runs.jobs = std::atoi(value);
        else if (option == "--batch") runs.batch = std::strtoull(value, nullptr, 10);
        else if (option == "--memory") runs.memoryBytes = std::atoll(value);
        else if (option == "--compiler") runs.compiler = value;
        else if (option == "--call") call = value;
        else {
            std::fprintf(stderr, "unknown option %s\n", option.c_str());
            return 2;
        }
    }
    if (!call.empty()) {
        const auto parsed = testing::parseCall(call);
        if (!parsed) {
            std::fprintf(stderr, "%s\n", parsed.error().text().c_str());
            return 2;
        }
        return check(*parsed);
    }
    const auto mutations =
        samples.empty() ? testing::ArgumentMutations(op) : testing::ArgumentMutations(testing::callsIn(samples));
    if (mutations.size() == 0) {
        std::fprintf(stderr, "no op with samples has '%s' in its name\n", (op + samples).c_str());
        return 2;
    }
    if (listing) {
        list(mutations, runs.from, runs.count);
        return 0;
    }
    return summarize(fuzz::runArguments(mutations, runs, say));
}
