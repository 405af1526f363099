#pragma once
// Checked runs: the graph at a place of a run is interpreted beside the run's first comparable graph, that one in its
// own dtypes and in f64, and each value is compared as soon as it is known and dropped after its last reader. All of it
// happens in a worker process. Compiled code can be compared at a graph's results only (Session::run): what its kernels
// fuse is never stored.
#include "cutaway/node_numbers.h"
#include "cutaway/session.h"

namespace cutaway {

struct CheckedRunOptions {
    JudgeOptions judge;
    std::string inputsFile;     // as RunOptions'
    double timeoutSeconds = 0;  // of one worker; 0 = no limit
    int64_t memoryBytes = 0;    // of one worker's address space; 0 = what the machine has left
    /// Compiled code in place of the interpreted graph: of the run's last graph only, and of its results only.
    Backend backend = Backend::Reference;
};
struct CheckedRun {
    Place place, reference;          // the graph that was checked, and the one that it was held against
    std::vector<NodeNumbers> nodes;  // in the order in which they ran
    std::optional<size_t> firstNonFinite, firstDivergent;  // positions in `nodes`
    std::string summary;                                   // a sentence
    std::string inputsFrom;
    std::vector<std::string> remarks;  // calls that f64 could not compute, values without a counterpart
    std::string failed;                // why it ended early; what ran until then is in `nodes`
};
/// `row` is called as soon as a node is known, on the calling thread. Errors: no such place; the reference does not
/// run; Cancelled. That the checked graph does not run is a verdict.
Result<CheckedRun> checkedRun(Session& session, const Place& place, const CheckedRunOptions& options = {},
                              const std::function<void(const NodeNumbers&)>& row = {}, const Progress& progress = {});

struct FirstDivergence {
    bool found = false;
    StepInfo step;       // where it is, if found
    CheckedRun checked;  // after that step; if none diverges, after the last
    int steps = 0;       // that were run
    std::string summary;
};
/// The first changed step of a run whose graph diverges. `looked` is called after each.
Result<FirstDivergence> firstDivergence(Session& session, RunId run, const CheckedRunOptions& options = {},
                                        const std::function<void(const StepInfo&, const CheckedRun&)>& looked = {},
                                        const Progress& progress = {});

/// Which run of a checked run a value is taken from.
enum class ValueSide : uint8_t { Checked, Reference, Reference64, Difference };

/// The two last dims of a value at an index of the others: numbers row by row; a large one is thinned out.
struct ValueSlice {
    int64_t rows = 0, columns = 0;          // of `numbers`
    int64_t everyRow = 1, everyColumn = 1;  // each number stands for so many: their largest in magnitude, NaNs first
    std::vector<double> numbers;
    double least = 0, most = 0;  // of the slice's finite elements
    int64_t nans = 0, infinities = 0;
};
/// The value of one node, whole.
class NodeValue {
  public:
    virtual ~NodeValue() = default;
    virtual const std::vector<int64_t>& sizes() const = 0;
    virtual std::string type() const = 0;
    /// `leading`: an index for each dim but the last two; missing ones are 0, and too large ones the last. A value of
    /// one dim is a row.
    virtual ValueSlice slice(const std::vector<int64_t>& leading, int64_t maxRows, int64_t maxColumns) const = 0;
};
/// Runs up to the node. `item`: of several results, the one. Errors: the node does not exist there, its value is no
/// tensor, it takes more memory than the machine has left, the reference computes no such value.
Result<std::shared_ptr<const NodeValue>> valueAt(Session& session, const Place& place, NodeKey node,
                                                 ValueSide side = ValueSide::Checked,
                                                 const CheckedRunOptions& options = {}, const Progress& progress = {});

}  // namespace cutaway
