// The libFuzzer program: fuzz_readers --format=NAME CORPUS [libFuzzer's own options]. One program for all readers,
// since each would hold the whole engine.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/formats.h"

namespace {
const cutaway::fuzz::Format* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
    constexpr const char* kOption = "--format=";  // libFuzzer leaves options with two dashes alone
    for (int i = 1; i < *count; ++i)
        for (const auto& format : cutaway::fuzz::formats())
            if (std::strncmp((*arguments)[i], kOption, std::strlen(kOption)) == 0 &&
                format.name == (*arguments)[i] + std::strlen(kOption))
                chosen = &format;
    if (chosen) return 0;
    std::fprintf(stderr, "usage: fuzz_readers --format=NAME CORPUS, where NAME is one of:");
    for (const auto& format : cutaway::fuzz::formats())
        std::fprintf(stderr, " %.*s", static_cast<int>(format.name.size()), format.name.data());
    std::fprintf(stderr, "\n");
    std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    chosen->run({data, size});
    return 0;
}
