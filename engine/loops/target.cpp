#include "engine/loops/target.h"

#include <algorithm>

#include "engine/ops/lower.h"

namespace cutaway {

constinit const TargetInfo kCpuTarget{
    .name = "cpu",
    .device = {DeviceType::Cpu},
    .alignment = 64,
    .sharedBytes = 0,
    .sums = DType::F64,  // additions wait for memory in either
    .missing = {},
    .loops = {.lanes = 16,
              .warp = 0,
              .narrowBytes = 64,
              .elementsPerPart = 16384,
              .maxSplit = 64,
              .rowBytes = 256 << 10,
              .minPrefetch = 4096,  // of less the processor has the next at hand anyway
              .maxPrefetch = 128 << 10,
              .lineBytes = 64,
              .onlineSoftmax = false,  // an exponential for each element costs more than reading it again (rows of
                                       // 16 MiB: 26 without, 28 ms with)
              .unrollJam = 8,          // cache lines of a page
              .maxUnrollJam = 8,
              .accumulators = 4,  // as many as an operation takes cycles
              .maxAccumulators = 8,
              .stateRegisters = 20,  // of 32
              .tile = 128,           // some cache lines of each page
              .maxCached = 8192,     // more would not stay in the cache
              .atomics = false,
              .indexBits = 64,  // addresses are computed in 64 anyway
              .inRegisters = true,
              .adjacentCost = 1,
              .sameCost = 0.5,
              .stridedCost = 6,
              .gatheredCost = 12},
    .fusion =
        {.operations = 4000, .buffers = 48, .unrollJamOperations = 256, .parts = 4, .freeCost = 24, .cheapCost = 4},
    .tf32 = Tf32::None,
    .measuresProducts = false,
};

constinit const TargetInfo kH100Target{
    .name = "h100",
    .device = {DeviceType::Cuda, 0},
    .alignment = 256,          // what the driver's own allocations have
    .sharedBytes = 227 << 10,  // that a block may have
    .sums = DType::F32,        // of lanes and parts, whose sums are short
    .missing = {},
    .loops = {.lanes = 256,  // threads of a block
              .warp = 32,
              .narrowBytes = 0,
              .elementsPerPart = 16384,
              .maxSplit = 1024,
              .rowBytes = 256 << 10,
              .minPrefetch = 4096,
              .maxPrefetch = 0,  // other blocks use the memory meanwhile: rows of 4 096 take three times as long
              .lineBytes = 128,
              .onlineSoftmax = false,
              .unrollJam = 8,
              .maxUnrollJam = 8,
              .accumulators = 4,
              .maxAccumulators = 8,
              .stateRegisters = 20,
              .tile = 32,
              .maxCached = 4096,  // of 8 bytes 32 KiB, beside what lanes join their states in
              .atomics = true,
              .indexBits = 64,  // with 32 sums of columns gain a tenth, while transposes lose a quarter (H200)
              .inRegisters = false,
              .adjacentCost = 1,
              .sameCost = 0.5,
              .stridedCost = 6,
              .gatheredCost = 12},
    .fusion = {.operations = 4000,
               .buffers = 48,
               .unrollJamOperations = 256,
               .parts = 48,  // as many as buffers: no library copies there
               .freeCost = 24,
               .cheapCost = 4},
    .tf32 = Tf32::None,
    .measuresProducts = false,
};

bool TargetInfo::hasFunction(std::string_view function) const {
    return isKernelFunction(function) && std::find(missing.begin(), missing.end(), function) == missing.end();
}

void TargetInfo::addTo(Hasher& hasher) const {
    hasher.add(name.text).add(static_cast<int>(device.type)).add(static_cast<int>(device.index));
    hasher.add(alignment).add(sharedBytes).add(static_cast<int>(sums)).add(static_cast<uint64_t>(missing.size()));
    for (const std::string_view function : missing) hasher.add(function);
    // Bound one by one, so that a member that is not hashed does not compile.
    const auto& [lanes, warp, narrowBytes, elementsPerPart, maxSplit, rowBytes, minPrefetch, maxPrefetch, lineBytes,
                 online, unrollJam, maxUnrollJam, accumulators, maxAccumulators, stateRegisters, tile, maxCached,
                 atomics, indexBits, inRegisters, adjacentCost, sameCost, stridedCost, gatheredCost] = loops;
    const auto& [operations, buffers, unrollJamOperations, parts, freeCost, cheapCost] = fusion;
    hasher.add(lanes).add(warp).add(narrowBytes).add(elementsPerPart).add(maxSplit).add(rowBytes).add(minPrefetch);
    hasher.add(maxPrefetch).add(lineBytes).add(online).add(unrollJam).add(maxUnrollJam);
    hasher.add(accumulators).add(maxAccumulators);
    hasher.add(stateRegisters).add(tile).add(maxCached).add(atomics).add(indexBits).add(inRegisters);
    hasher.add(adjacentCost).add(sameCost).add(stridedCost).add(gatheredCost);
    hasher.add(static_cast<uint64_t>(operations)).add(static_cast<uint64_t>(buffers)).add(unrollJamOperations);
    hasher.add(static_cast<uint64_t>(parts)).add(freeCost).add(cheapCost);
    hasher.add(static_cast<int>(tf32)).add(measuresProducts);
}

bool TargetInfo::operator==(const TargetInfo& other) const {
    Hasher own, theirs;
    addTo(own);
    other.addTo(theirs);
    return own.finish() == theirs.finish();
}

}  // namespace cutaway
