#pragma once
// A call inside of a vmap, as a batching rule sees it.
#include <string_view>
#include <vector>

#include "engine/ops/build.h"

namespace cutaway {

inline constexpr std::string_view kAddBatchDim = "torch._C._functorch._add_batch_dim";
inline constexpr std::string_view kRemoveBatchDim = "torch._C._functorch._remove_batch_dim";
inline constexpr std::string_view kVmapBegin = "torch._C._functorch._vmap_increment_nesting";
inline constexpr std::string_view kVmapEnd = "torch._C._functorch._vmap_decrement_nesting";

/// The level whose examples the value is one of; 0 for any other value.
int64_t levelOfExample(const Node* value);

/// Arguments and types are those of one example; `all` gives what they are examples of.
class BatchedCall : public InferContext {
  public:
    BatchedCall(const Node& call, GraphBuilder& builder, int64_t level, SymInt count)
        : InferContext(call.op(), call.args()),
          m_call(&call),
          m_builder(&builder),
          m_level(level),
          m_count(std::move(count)) {}

    const Node& node() const { return *m_call; }
    GraphBuilder& builder() { return *m_builder; }
    const SymInt& count() const { return m_count; }
    bool isBatched(const Argument& operand) const { return levelOfExample(operand.node()) == m_level; }
    bool isBatched(size_t position) const { return isBatched(arg(position)); }
    /// All examples of an operand along dim 0; an operand that all of them share is expanded.
    Value all(const Argument& operand);
    Value all(size_t position) { return all(arg(position)); }
    /// An operand as the call reads it.
    Value one(size_t position) { return m_builder->value(*arg(position).node()); }
    const TensorType& type(size_t position) const { return arg(position).node()->tensor(); }
    bool isTensor(size_t position) const {
        return position < arguments() && arg(position).node() && arg(position).node()->type().tensor();
    }
    size_t arguments() const { return m_args.size(); }
    /// Sizes with the number of examples in front.
    SymDims sizes(const SymDims& ofOne) const;
    std::vector<Argument> copyOfArgs() const { return {m_args.begin(), m_args.end()}; }
    Value call(std::string_view op, std::vector<Argument> positional, NamedArguments keywords = {}) {
        return m_builder->call(op, std::move(positional), std::move(keywords));
    }
    /// The call's operator with these arguments; one value, or one per result.
    Values again(std::vector<Argument> args);

  private:
    const Node* m_call;
    GraphBuilder* m_builder;
    int64_t m_level;
    SymInt m_count;
};

/// All examples with 1s behind dim 0, so that what remains has this rank.
Value withRank(const Value& all, int64_t rank);

}  // namespace cutaway
