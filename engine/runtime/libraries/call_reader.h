#pragma once
// A library's view of a call: arguments by the names of the operator's schema.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/libraries/element_bytes.h"
#include "engine/libraries/library.h"

namespace cutaway {

using Dims = std::vector<int64_t>;

class CallReader {
  public:
    explicit CallReader(const CtCall& call) : m_call(&call) {}
    const CtCall& call() const { return *m_call; }
    bool is(std::string_view op) const { return op == m_call->op; }

    /// Null if the operator has no such parameter, or it is None.
    const CtArgument* find(std::string_view param) const;
    /// The operand's number.
    std::optional<int> operand(std::string_view param) const;
    /// Null as `find`, and where the argument is not a tensor.
    const CtTensor* tensor(std::string_view param) const;
    bool isConstant(std::string_view param) const;
    bool flag(std::string_view param) const;
    std::optional<double> real(std::string_view param) const;
    std::string_view text(std::string_view param) const;
    /// Numbers of a list, one standing for all `count`; zeros if there is no such parameter.
    Dims integers(std::string_view param, size_t count) const;
    std::vector<float> reals(std::string_view param) const;

  private:
    const CtCall* m_call;
};

Dims sizesOf(const CtTensor& tensor);
Dims stridesOf(const CtTensor& tensor);
int64_t elementsOf(const CtTensor& tensor);
/// Row-major.
Dims contiguousStridesOf(const Dims& sizes);

}  // namespace cutaway
