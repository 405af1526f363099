#pragma once
// Which of cuBLASLt's algorithms computes a product, measured where it runs. Its heuristic orders them by a model: its
// first was up to 1.5 times slower than its best (bf16, 64 x 768 by 768 x 50257, H200).
#include <functional>
#include <span>
#include <string>

#include "engine/runtime/cuda/library.h"

namespace cutaway::cuda {

/// The most that are asked for and timed.
constexpr int kMostCandidates = 16;

/// The choice kept for the product on this GPU with this version of cuBLASLt (keepCandidates), if `isValid` says so.
/// Else the candidate that `multiply` takes the least time with, which is kept. One that fails is left out. `multiply`
/// enqueues the product in the process's stream and returns cuBLASLt's status; it is called several times.
MatmulAlgo chooseCandidate(const std::string& product, std::span<const MatmulHeuristic> candidates,
                           const std::function<bool(const MatmulAlgo&)>& isValid,
                           const std::function<int(const MatmulAlgo&)>& multiply);
/// Whether the process's stream is being recorded, so that nothing can be timed in it.
bool isRecording();

}  // namespace cutaway::cuda
