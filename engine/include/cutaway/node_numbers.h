#pragma once
// What the numbers of one node are like beside those of the same value elsewhere. Plain data.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/node_key.h"

namespace cutaway {

/// Who decides whether a value is wrong.
enum class Judge : uint8_t {
    F64Error,  // wrong: its error to the f64 run is more than `tolerance` times the reference's
    Same,      // what PyTorch's same() says of reference, value and f64 run
    Strict,    // wrong: any bit differs from the reference; all NaNs are equal
    Plugin,    // a plugin's judge, asked about each value and its reference
};
struct JudgeOptions {
    Judge judge = Judge::F64Error;
    std::string plugin;  // of Plugin: "PLUGIN" or "PLUGIN.JUDGE"
    /// Own: how many times the reference's error to the f64 run a value may have; 4 if absent. Same: its `tol`; 1e-4 if
    /// absent.
    std::optional<double> tolerance;
    // Of Same, as PyTorch calls them:
    bool cosineSimilarity = false, equalNan = true, exactDtype = true, ignoreNonFloat = false;
    bool largerMultiplierForSmallTensors = false, maxMultiplier = false, iouForBool = false;
    double iouThreshold = 0.99;
};

enum class NodeVerdict : uint8_t {
    Equal,      // to the bit
    Close,      // what rounding may make of it
    Wrong,      // the judge says so
    NonFinite,  // a NaN or an infinity that the reference does not have
    WrongType,  // the graph says another dtype, shape or layout
    Failed,     // the node does not run
    Unmatched,  // the reference computes no such value
};
/// Wrong, NonFinite, WrongType and Failed.
bool diverges(NodeVerdict verdict);
const char* wordOf(NodeVerdict verdict);  // "equal", "close", "wrong", "not finite", "wrong type", "fails", "unmatched"

struct NodeNumbers {
    NodeKey node = NodeKey::None;
    std::string name, op, type;
    std::string reference;  // the node that computes this value in the reference; empty for none
    NodeVerdict verdict = NodeVerdict::Unmatched;
    std::string why;  // a sentence; empty where there is nothing to say
    int64_t elements = 0, nans = 0, infinities = 0;
    int64_t newNonFinite = 0;  // where the reference is finite
    int64_t different = 0;     // elements, from the reference
    // Against the reference, over elements that are finite in both; 0 without a reference:
    double maxAbsolute = 0, maxRelative = 0;
    double maxUlp = -1;  // in steps between neighbours of the value's dtype; negative: it is not a float
    double cosine = 1;
    std::vector<int64_t> worst;  // index of the element that is furthest off
    double worstValue = 0, worstReference = 0;
    // Distance to the f64 run, root of the mean square and largest; negative: there is none.
    double rmse = -1, referenceRmse = -1, maxFrom64 = -1, referenceMaxFrom64 = -1;
};

}  // namespace cutaway
