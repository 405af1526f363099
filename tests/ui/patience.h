#pragma once
// How many milliseconds a test of windows waits for what should come at once.
namespace cutaway::testing {

constexpr int kPatience = 30000;
constexpr int kEnginePatience = 60000;  // an engine computes meanwhile

}  // namespace cutaway::testing
