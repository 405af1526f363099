#include "engine/runtime/exported/processor_needs.h"

#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ct {
namespace {

#if defined(__x86_64__)
/// Where cpuid says it; `wide`: the registers (in bits) that the system must save, too.
struct Feature {
    const char* name;
    unsigned leaf, sub;
    enum Register { A, B, C, D } from;
    unsigned bit, wide;
};
constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, Feature::C, 0, 128},
    {"ssse3", 1, 0, Feature::C, 9, 128},
    {"fma", 1, 0, Feature::C, 12, 256},
    {"cx16", 1, 0, Feature::C, 13, 128},
    {"sse4.1", 1, 0, Feature::C, 19, 128},
    {"sse4.2", 1, 0, Feature::C, 20, 128},
    {"movbe", 1, 0, Feature::C, 22, 128},
    {"popcnt", 1, 0, Feature::C, 23, 128},
    {"avx", 1, 0, Feature::C, 28, 256},
    {"f16c", 1, 0, Feature::C, 29, 256},
    {"bmi", 7, 0, Feature::B, 3, 128},
    {"avx2", 7, 0, Feature::B, 5, 256},
    {"bmi2", 7, 0, Feature::B, 8, 128},
    {"avx512f", 7, 0, Feature::B, 16, 512},
    {"avx512dq", 7, 0, Feature::B, 17, 512},
    {"avx512ifma", 7, 0, Feature::B, 21, 512},
    {"avx512cd", 7, 0, Feature::B, 28, 512},
    {"avx512bw", 7, 0, Feature::B, 30, 512},
    {"avx512vl", 7, 0, Feature::B, 31, 512},
    {"avx512vbmi", 7, 0, Feature::C, 1, 512},
    {"avx512vbmi2", 7, 0, Feature::C, 6, 512},
    {"gfni", 7, 0, Feature::C, 8, 128},
    {"avx512vnni", 7, 0, Feature::C, 11, 512},
    {"avx512bitalg", 7, 0, Feature::C, 12, 512},
    {"avx512vpopcntdq", 7, 0, Feature::C, 14, 512},
    {"avx512fp16", 7, 0, Feature::D, 23, 512},
    {"avxvnni", 7, 1, Feature::A, 4, 256},
    {"avx512bf16", 7, 1, Feature::A, 5, 512},
    {"lzcnt", 0x80000001, 0, Feature::C, 5, 128},
};

bool isHere(const Feature& feature) {
    unsigned all[4] = {};
    if (__get_cpuid_count(feature.leaf, feature.sub, &all[0], &all[1], &all[2], &all[3]) == 0) return false;
    if ((all[feature.from] >> feature.bit & 1) == 0) return false;
    // These two ask the system as well, which has to save the registers.
    if (feature.wide >= 512) return __builtin_cpu_supports("avx512f") != 0;
    return feature.wide < 256 || __builtin_cpu_supports("avx") != 0;
}
bool isHere(const char* name) {
    for (const Feature& feature : kFeatures)
        if (std::strcmp(feature.name, name) == 0) return isHere(feature);
    return false;
}
#else
bool isHere(const char*) { return false; }
#endif

void append(std::string& all, const char* name) { all += (all.empty() ? "" : ", ") + std::string(name); }

}  // namespace

std::string lackingOf(const char* const* needs) {
    std::string all;
    for (; *needs != nullptr; ++needs)
        if (!isHere(*needs)) append(all, *needs);
    return all;
}

std::string processorHas() {
    std::string all;
#if defined(__x86_64__)
    for (const Feature& feature : kFeatures)
        if (isHere(feature)) append(all, feature.name);
#endif
    return all;
}

}  // namespace ct
