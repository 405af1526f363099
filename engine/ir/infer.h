#pragma once
// What a shape rule sees of a call, and how calls get their types.
#include <string_view>

#include "cutaway/result.h"
#include "engine/ir/node.h"

namespace cutaway {

/// Arguments of one call, by schema position or parameter name. Shared by shape rules, kernels and lowering.
class CallView {
  public:
    CallView(const Op& op, std::span<const Argument> args) : m_op(&op), m_args(args) {}
    explicit CallView(const Node& node) : CallView(node.op(), node.args()) {}

    const Op& op() const { return *m_op; }
    size_t count() const { return m_args.size(); }
    const Argument& arg(size_t position) const { return m_args[position]; }
    const Argument& arg(std::string_view param) const;
    int position(std::string_view param) const;
    bool has(size_t position) const { return position < m_args.size() && !m_args[position].isNone(); }
    bool has(std::string_view param) const { return !arg(param).isNone(); }

    // Literals. Each returns `fallback` for None.
    bool flag(std::string_view param, bool fallback = false) const;
    double real(std::string_view param, double fallback = 0) const;
    std::string text(std::string_view param) const;
    std::optional<DType> dtype(std::string_view param) const;
    std::optional<Device> device(std::string_view param) const;
    std::optional<MemoryFormat> memoryFormat(std::string_view param) const;
    /// A literal number; nullopt for None and for run-time values.
    std::optional<Scalar> scalar(std::string_view param) const;

  protected:
    const Op* m_op;
    std::span<const Argument> m_args;
};

/// An operand as type promotion sees it: tensors with dims count most, then 0-d tensors, then literals.
struct Operand {
    TensorType type;
    bool literal = false;  // a Python number where a tensor may stand
};

class InferContext : public CallView {
  public:
    using CallView::CallView;

    /// The type of the tensor at a parameter, or of the literal number there (0-d: bool, int64, float32 by kind; the
    /// default dtype is float32).
    Result<Operand> operand(size_t position) const;
    Result<TensorType> tensor(size_t position) const;
    Result<TensorType> tensor(std::string_view param) const;
    /// All tensors of a Tensor[] argument; None items are skipped.
    Result<std::vector<TensorType>> tensors(std::string_view param) const;

    // Integers that may be symbolic or read from other nodes.
    Result<SymInt> size(std::string_view param) const;
    Result<SymDims> sizes(std::string_view param) const;
    /// Integers that must be literal: dims, groups, kernel sizes. A single number for an int[n] counts n times.
    Result<int64_t> integer(std::string_view param, int64_t fallback = 0) const;
    Result<std::vector<int64_t>> integers(std::string_view param) const;
    /// A dim, wrapped to 0..rank-1 (rank 0 counts as 1). Error naming the op, the dim and the range.
    Result<int64_t> dim(std::string_view param, int64_t rank) const;
    /// A list of dims, wrapped, without repeats; an empty or absent list means all if `emptyIsAll`.
    Result<std::vector<int64_t>> dims(std::string_view param, int64_t rank, bool emptyIsAll) const;

    /// An error about this call: "aten.mm.default: <what>".
    Error fail(std::string what) const;
};

// What type rules ask about sizes (size_guards.h says what a guard is).
/// Whether two sizes are known to differ. If that is not known they are taken for equal, and that becomes a guard.
bool differ(const SymInt& a, const SymInt& b);
bool differ(const SymDims& a, const SymDims& b);
/// Whether a size is known to exceed the limit. If that is not known it is taken not to, and that becomes a guard.
bool exceeds(const SymInt& size, const SymInt& limit);
/// Whether `by` (not 0) is known not to divide a size. If that is not known it is taken to, and that becomes a guard.
bool leavesRemainder(const SymInt& size, const SymInt& by);

/// The SymInt that an argument item denotes: a literal, an expression, or a node of symbolic type.
std::optional<SymInt> symIntOf(const Argument& argument);

/// Type of a call by its op's shape rule; OpaqueType for opaque ops. Errors name the op and the broken rule.
Result<ValueType> inferCall(const Op& op, std::span<const Argument> args);

/// torch.result_type over the operands: category first, then dims over 0-d over literals.
DType resultType(std::span<const Operand> operands);
/// Broadcast of all shapes, or an error naming the two sizes that disagree.
Result<SymDims> broadcastSizes(std::span<const SymDims> shapes);

}  // namespace cutaway
