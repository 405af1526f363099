#pragma once
// Values of the whole graph's nodes, computed once somebody wants them as inputs.
#include "cutaway/jobs.h"
#include "engine/minify/candidate.h"

namespace cutaway {

class BaseValues {
  public:
    /// `user`: gives the values of the given inputs, in order, when somebody needs one.
    BaseValues(Snapshot base, std::function<Result<std::vector<Tensor>>()> user);
    /// Runs the graph as far as these nodes need it. What cannot be had (the run fails, memory is short) is made up; a
    /// remark says so.
    Result<void> compute(const std::vector<std::string>& names, const Progress& progress);
    /// Of an input of a graph that was made of the base; made up if it was never computed. Undefined: its sizes are not
    /// known.
    Tensor of(const Node& input);
    /// What every run would make up for a large parameter or buffer without data, made once; undefined where there is
    /// none of this name and type.
    Tensor syntheticWeight(const std::string& name, const TensorType& type);
    /// The given inputs, the module's own tensors and what stands in for others. Errors: the inputs cannot be read.
    Result<std::vector<Tensor>> all();
    const std::vector<std::string>& remarks() const { return m_remarks; }

    /// Has the given inputs at hand. Errors: as all().
    Result<void> fetch();

  private:
    const NamedValues& syntheticWeights();

    Snapshot m_base;
    std::function<Result<std::vector<Tensor>>()> m_fetch;
    std::vector<Tensor> m_user;
    bool m_fetched = false;
    NamedValues m_known;
    std::optional<NamedValues> m_syntheticWeights;  // by the names of what they stand for
    std::vector<std::string> m_remarks;
};

}  // namespace cutaway
