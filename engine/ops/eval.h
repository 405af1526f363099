#pragma once
// What a reference kernel sees: tensors instead of nodes, literals as they are, and the type its result must have.
#include <variant>

#include "engine/ir/infer.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// The value of a node at run time: one tensor, or the tensors of a tuple (undefined ones included).
using TensorList = std::vector<Tensor>;

/// What random ops draw from in one run: a key, and how many of them have drawn, so that a run repeats exactly.
struct RandomState {
    uint64_t seed = 0, draws = 0;
};

/// Gives kernels the values of other nodes, and a place to draw random numbers from.
class ValueSource {
  public:
    virtual ~ValueSource() = default;
    virtual const TensorList& valueOf(const Node& node) const = 0;
    virtual RandomState& random() const { return m_random; }

  private:
    mutable RandomState m_random;
};

/// One tensor, several, or an error.
class EvalResult {
  public:
    EvalResult(Tensor tensor);
    EvalResult(TensorList tensors);
    EvalResult(Error error);
    EvalResult(Result<Tensor> tensor);
    bool ok() const { return m_state.index() == 0; }
    TensorList& tensors() { return std::get<0>(m_state); }
    Error& error() { return std::get<1>(m_state); }

  private:
    std::variant<TensorList, Error> m_state;
};

class EvalContext : public InferContext {
  public:
    /// `result` is the inferred type; all sizes are numbers (symbols have been specialised).
    EvalContext(const Op& op, std::span<const Argument> args, const ValueType& result, const ValueSource& values)
        : InferContext(op, args), m_result(&result), m_values(&values) {}

    /// The tensor at a parameter; a literal number becomes a 0-d tensor of dtype int64, float64, bool or complex128.
    Tensor in(size_t position) const;
    Tensor in(std::string_view param) const { return in(static_cast<size_t>(position(param))); }
    /// Undefined when the argument is None.
    Tensor optional(std::string_view param) const;
    /// Tensor[] or Tensor?[]; None items are undefined tensors.
    TensorList list(std::string_view param) const;
    /// A number: a literal, or the value of a node.
    Scalar number(std::string_view param) const;

    // Literals that the shape rule has accepted.
    int64_t integerOr(std::string_view param, int64_t fallback) const;
    Dims integersOf(std::string_view param) const;
    int64_t dimOf(std::string_view param, int64_t rank) const;
    Dims dimsOf(std::string_view param, int64_t rank, bool emptyIsAll) const;

    const TensorType& resultType(size_t result = 0) const;
    Dims resultSizes(size_t result = 0) const { return toInts(resultType(result).sizes); }
    /// A fresh tensor of the result's dtype, sizes and strides, uninitialised.
    Tensor result(size_t result = 0) const;
    /// torch.result_type of the operands at these positions.
    DType promoted(std::initializer_list<size_t> positions) const;
    const ValueType& resultValueType() const { return *m_result; }
    const ValueSource& values() const { return *m_values; }
    /// A view of `source` with the result's sizes, strides and offset: all that most view ops do.
    Tensor resultView(const Tensor& source) const;

  private:
    const ValueType* m_result;
    const ValueSource* m_values;
};

/// Runs the op's kernel (or, for an in-place twin, the functional kernel, and writes the result back).
EvalResult evaluateCall(const Op& op, std::span<const Argument> args, const ValueType& result,
                        const ValueSource& values);

}  // namespace cutaway
