#pragma once
// A trial as bytes: what the program asks of the process that makes it, and what that answers.
#include <functional>
#include <mutex>

#include "engine/passes/pass_fuel.h"
#include "engine/runtime/message.h"
#include "engine/runtime/wire.h"
#include "engine/trials/trial.h"

namespace cutaway {

/// A graph as text, which is also what the repro's file holds, with the tensors that the text names.
struct TrialJob {
    std::string graph;
    std::string stage;  // that comes next for it (ModuleOrigin::stage), which the text does not say
    CompileRequest request;
    std::vector<std::pair<std::string, Tensor>> constants;         // parameters, buffers, attributes
    std::vector<std::pair<std::string, Tensor>> syntheticWeights;  // for those without data; no part of the result
    std::vector<Tensor> inputs;                                    // of the given inputs, in order; may be undefined
    TrialCheck check;
    std::optional<PassFuel> passFuel;  // the trial ends behind so many rewrites of that pass
};

/// Tensors that both sides hold already: they are made when the first trial needs them, and sent once.
class TensorTable {
  public:
    explicit TensorTable(std::function<std::vector<Tensor>()> make = {}) : m_make(std::move(make)) {}
    /// The memory that holds them, for any number of processes.
    Result<const SharedMemory*> shared() const;
    /// The number of an equal view of the same storage; -1 if there is none.
    int find(const Tensor& tensor) const;

  private:
    std::function<std::vector<Tensor>()> m_make;
    mutable std::mutex m_mutex;
    mutable std::optional<SharedMemory> m_memory;
    mutable std::vector<Tensor> m_tensors;
};

Message writeJob(const TrialJob& job, const TensorTable& table);
Result<TrialJob> readJob(const Message& message, const std::vector<Tensor>& table);
/// Parses the graph and makes the trial in this process.
TrialOutcome runJob(const TrialJob& job, StatusPage& board);

std::string writeOutcome(const TrialOutcome& outcome);
Result<TrialOutcome> readOutcome(std::string_view bytes);

}  // namespace cutaway
