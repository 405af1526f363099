#pragma once
// Calls that nobody would write: the samples of the op rows with their arguments changed by a seed. Mutation number N
// is the same on every machine, as long as the op tables stay; what a report names is the call's text, which always is.
#include <string_view>
#include <vector>

#include "tests/support/call_text.h"

namespace cutaway::testing {

class ArgumentMutations {
  public:
    /// Of ops whose name holds `only`; of all if it is empty.
    explicit ArgumentMutations(std::string_view only = {});
    /// Of these calls: ops that have no samples.
    explicit ArgumentMutations(std::vector<CallText> calls) : m_samples(std::move(calls)) {}
    /// Samples that mutations start from; in-place twins have those of the functional op.
    size_t size() const { return m_samples.size(); }
    /// Mutation number `seed`: a sample with one change, rarely several.
    CallText at(uint64_t seed) const;

  private:
    std::vector<CallText> m_samples;
};

}  // namespace cutaway::testing
