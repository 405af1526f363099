#pragma once
// Mutated calls in child processes: what a call does to its process is a line in the report, and the next one goes on.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/argument_mutations.h"

namespace cutaway::fuzz {

struct ArgumentRuns {
    uint64_t from = 0, count = 1000;  // mutation numbers
    double seconds = 0;               // stop starting new ones after that; 0 = no limit
    double callSeconds = 5;           // of work; a call that takes more hangs
    int jobs = 1;
    uint64_t batch = 256;  // calls per child; those that ran are compiled together
    bool compiled = false;
    std::string compiler;                    // as CpuBuildOptions'
    int64_t memoryBytes = int64_t{2} << 30;  // address space of a child; 0 = no limit, as address sanitizer needs it
};

struct ArgumentFailure {
    std::string kind;  // "crash", "hang", "leak", "problem"
    uint64_t seed = 0;
    std::string call, stage, detail;
    /// What failures of one cause have in common.
    std::string signature() const;
};
struct ArgumentTally {
    uint64_t calls = 0, refusedByTypes = 0, refusedWhenRun = 0, large = 0, ran = 0;
    std::map<std::string, std::vector<ArgumentFailure>> failures;  // by signature
};

/// `say`: called with every failure that is the first of its signature.
ArgumentTally runArguments(const testing::ArgumentMutations& mutations, const ArgumentRuns& runs,
                           void (*say)(const ArgumentFailure&));

}  // namespace cutaway::fuzz
