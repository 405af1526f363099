#pragma once
// Writing graphs by hand: arguments bound to schemas, types inferred, and arithmetic on handles, so that a
// decomposition or a derivative reads like its formula.
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "cutaway/releases.h"
#include "cutaway/result.h"
#include "engine/ir/graph.h"
#include "engine/ir/infer.h"
#include "engine/ops/op_registry.h"

namespace cutaway {

using NamedArguments = std::vector<std::pair<std::string, Argument>>;

/// Arguments in schema order with defaults filled in. A single number for an int[n] is spread; a single value for a
/// list is not. Errors name the op and the parameter: unknown keyword, given twice, missing, of the wrong kind.
Result<std::vector<Argument>> bindArguments(const Op& op, std::vector<Argument> positional, NamedArguments keywords);

class GraphBuilder;

/// A borrowed handle to a node under construction. Null after an error, which the builder keeps.
class Value {
  public:
    Value() = default;
    Value(GraphBuilder& builder, Node* node) : m_builder(&builder), m_node(node) {}
    explicit operator bool() const { return m_node != nullptr; }
    operator Argument() const { return Argument(m_node); }
    Node* node() const { return m_node; }
    GraphBuilder& builder() const { return *m_builder; }
    /// The tensor type; an empty f32 scalar after an error, so that formulas can run to their end.
    const TensorType& type() const;
    DType dtype() const { return type().dtype; }
    const SymDims& sizes() const { return type().sizes; }
    SymInt size(int64_t dim) const;
    int64_t rank() const { return type().rank(); }
    /// Result number `position` of a tuple (a getitem node).
    Value operator[](int64_t position) const;

  private:
    GraphBuilder* m_builder = nullptr;
    Node* m_node = nullptr;
};

/// Inserts nodes before a position. The first error sticks and turns everything after it into nulls.
class GraphBuilder {
  public:
    explicit GraphBuilder(Graph& graph, Node* before = nullptr) : m_graph(&graph), m_before(before) {}

    Value call(const Op& op, std::vector<Argument> positional, NamedArguments keywords = {},
               std::string_view name = {});
    Value call(std::string_view op, std::vector<Argument> positional, NamedArguments keywords = {}) {
        return call(requireOp(op), std::move(positional), std::move(keywords));
    }
    /// With arguments that are bound already: one per schema parameter, as Node::args() has them.
    Value callBound(const Op& op, std::vector<Argument> args, std::string_view name = {});
    /// A call whose type does not follow from its operands' types.
    Value callAs(ValueType type, std::string_view op, std::vector<Argument> args);
    Value value(Node& node) { return Value(*this, &node); }
    Graph& graph() { return *m_graph; }
    Node* before() const { return m_before; }
    void setBefore(Node* before) { m_before = before; }
    /// The type of a call whose size depends on data, which no rule gives: what was written of the call that this
    /// builds.
    void setFoundType(const ValueType& type) { m_foundType = type; }
    /// Whose compiler the graph is made for: formulas differ between releases.
    Release release() const { return m_release; }
    void setRelease(Release release) { m_release = release; }
    /// Copied to every node created from now on (origin, module path, stack trace).
    void setProvenance(Provenance provenance) {
        m_provenance = std::make_shared<const Provenance>(std::move(provenance));
    }
    const Provenance& provenance() const { return *m_provenance; }
    const std::shared_ptr<const Provenance>& sharedProvenance() const { return m_provenance; }
    const std::optional<Error>& error() const { return m_error; }
    void fail(Error error) {
        if (!m_error) m_error = std::move(error);
    }
    const std::vector<Node*>& created() const { return m_created; }

  private:
    Value add(Node& node);

    Graph* m_graph;
    Node* m_before;
    std::shared_ptr<const Provenance> m_provenance = std::make_shared<const Provenance>();
    std::optional<Error> m_error;
    std::optional<ValueType> m_foundType;
    std::vector<Node*> m_created;
    Release m_release = kDefaultRelease;
};

/// A tensor handle or a literal, where an op takes either.
class OperandValue {
  public:
    OperandValue(const Value& value) : m_value(value), m_argument(value) {}
    OperandValue(int value) : m_argument(value) {}
    OperandValue(int64_t value) : m_argument(value) {}
    OperandValue(double value) : m_argument(value) {}
    OperandValue(const Scalar& value) : m_argument(value) {}
    /// A literal or a symbol.
    explicit OperandValue(const Argument& literal) : m_argument(literal) {}
    const Argument& argument() const { return m_argument; }
    const Value& value() const { return m_value; }

  private:
    Value m_value;
    Argument m_argument;
};

// aten.{add,sub,mul,div}.Tensor; literals stay literals, as PyTorch's traces write them.
Value operator+(const Value& a, const OperandValue& b);
Value operator-(const Value& a, const OperandValue& b);
Value operator*(const Value& a, const OperandValue& b);
Value operator/(const Value& a, const OperandValue& b);
Value operator-(const Value& a);  // aten.neg.default

// Frequent calls, named as in PyTorch.
Value permute(const Value& x, const std::vector<int64_t>& dims);
Value transposeLast(const Value& x);  // permute of the last two dims
Value view(const Value& x, const SymDims& sizes);
/// aten.view.default where strides allow, else clone(memory_format=contiguous) and view.
Value reshape(const Value& x, const SymDims& sizes);
Value expand(const Value& x, const SymDims& sizes);
Value unsqueeze(const Value& x, int64_t dim);
Value squeezeDims(const Value& x, const std::vector<int64_t>& dims);
Value sum(const Value& x, const std::vector<int64_t>& dims, bool keepDim);
/// prims.convert_element_type, or x itself if it has that dtype already.
Value convert(const Value& x, DType dtype);
/// aten.full.default with every keyword spelled out, as PyTorch's traces write it.
Value full(GraphBuilder& builder, const SymDims& sizes, const Scalar& value, DType dtype, Device device);
Value where(const Value& condition, const Value& yes, const Value& no);
/// One op of one tensor: unary("aten.exp.default", x).
Value unary(std::string_view op, const Value& x);

/// What a decomposition gives back: one value, several, or "not handled".
class Values {
  public:
    Values(Value value) : m_values{value}, m_handled(true) {}
    Values(std::vector<Value> values) : m_values(std::move(values)), m_handled(true), m_tuple(true) {}
    Values(std::initializer_list<Value> values) : m_values(values), m_handled(true), m_tuple(true) {}
    static Values notHandled() { return Values(); }
    bool handled() const { return m_handled; }
    bool isTuple() const { return m_tuple; }
    const std::vector<Value>& values() const { return m_values; }

  private:
    Values() = default;
    std::vector<Value> m_values;
    bool m_handled = false, m_tuple = false;
};

/// What a decomposition sees: the call it replaces, and a builder placed before it.
class Decomposition : public InferContext {
  public:
    Decomposition(const Node& node, GraphBuilder& builder)
        : InferContext(node.op(), node.args()), m_node(&node), m_builder(&builder) {}
    GraphBuilder& builder() { return *m_builder; }
    Release release() const { return m_builder->release(); }
    const Node& node() const { return *m_node; }
    /// The tensor at a parameter; it is a bug to ask for one that is not there.
    Value in(size_t position) const;
    Value in(std::string_view param) const { return in(static_cast<size_t>(position(param))); }
    /// The tensor or literal number at a parameter, for use in arithmetic.
    OperandValue any(size_t position) const;
    /// The tensors of a Tensor[] argument.
    std::vector<Value> list(std::string_view param) const;
    /// Type of the call's result.
    const TensorType& out() const { return m_node->tensor(); }
    const ValueType& outType() const { return m_node->type(); }
    Value call(std::string_view op, std::vector<Argument> positional, NamedArguments keywords = {}) {
        return m_builder->call(op, std::move(positional), std::move(keywords));
    }
    /// Literal arguments that shape rules have already accepted.
    int64_t integerOr(std::string_view param, int64_t fallback) const;
    std::vector<int64_t> integersOf(std::string_view param) const;
    int64_t dimOf(std::string_view param, int64_t rank) const;
    std::vector<int64_t> dimsOf(std::string_view param, int64_t rank, bool emptyIsAll) const;
    SymDims sizesOf(std::string_view param) const;

  private:
    const Node* m_node;
    mutable GraphBuilder* m_builder;
};

/// What a derivative sees: the call, its results, the gradients that arrived, and slots for the gradients it makes.
/// Gradients are written for the broadcast shape; the driver sums and casts them to each operand's own.
class Derivation : public Decomposition {
  public:
    Derivation(const Node& node, GraphBuilder& builder, std::vector<Value> results, std::vector<Value> gradients);
    Value out(size_t result = 0) const { return m_results[result]; }
    /// Gradient of a result; null if that result was not used (dy(0) is there when the op has one result).
    Value dy(size_t result = 0) const { return m_gradients[result]; }
    /// The slot for the gradient of a parameter (of item `item` of a Tensor[]).
    Value& input(size_t position, size_t item = 0);
    /// True if anybody asks for this parameter's gradient.
    bool needs(size_t position) const;
    const std::vector<std::vector<Value>>& inputGradients() const { return m_inputs; }
    void setNeeded(std::vector<bool> needed) { m_needed = std::move(needed); }

  private:
    std::vector<Value> m_results, m_gradients;
    std::vector<std::vector<Value>> m_inputs;
    std::vector<bool> m_needed;
};

}  // namespace cutaway
