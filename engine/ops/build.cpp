#include "engine/ops/build.h"

#include <numeric>

#include "engine/ir/data_dependent.h"
#include "engine/ops/refused_argument.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/support/check.h"

namespace cutaway {

namespace {

/// Whether numbers may stand for tensors: PyTorch's own list, and the prims that are written with ATen operators or
/// elementwise (the fma of a compiled optimizer has a number for its factor).
bool takesNumbers(const Op& op) {
    if (op.name().starts_with("prims.") && op.def() && (op.def()->expand == Expand::Composite || op.is(Tag::Pointwise)))
        return true;
    constexpr std::string_view kNames[] = {"add",    "sub",         "mul",          "div",  "subtract", "multiply",
                                           "divide", "true_divide", "floor_divide", "copy", "copy_"};
    const Op& row = op.functional() ? *op.functional() : op;
    return std::find(std::begin(kNames), std::end(kNames), row.baseName()) != std::end(kNames);
}
/// A number that stands for a tensor although the op takes none, no tensor is beside it, or it would be written to.
const Param* misplacedNumber(const Op& op, const std::vector<Argument>& bound) {
    const bool fits = takesNumbers(op) && std::any_of(bound.begin(), bound.end(),
                                                      [](const Argument& argument) { return argument.holdsNode(); });
    for (size_t i = 0; i < bound.size(); ++i) {
        const Param& param = op.schema()->params[i];
        if (param.kind == ParamKind::Tensor && bound[i].isNumber() && (!fits || param.mutated)) return &param;
    }
    return nullptr;
}

}  // namespace

Result<std::vector<Argument>> bindArguments(const Op& op, std::vector<Argument> positional, NamedArguments keywords) {
    const Schema* schema = op.schema();
    if (schema == nullptr) {
        CT_CHECK(keywords.empty(), "opaque ops keep their keywords beside the positional arguments");
        return positional;
    }
    const auto& params = schema->params;
    std::vector<Argument> bound(params.size());
    std::vector<bool> given(params.size(), false);
    if (positional.size() > params.size() || (!positional.empty() && params[positional.size() - 1].keywordOnly)) {
        const auto limit = std::count_if(params.begin(), params.end(), [](const Param& p) { return !p.keywordOnly; });
        if (positional.size() > static_cast<size_t>(limit))
            return invalidInput(op.name() + ": " + std::to_string(positional.size()) +
                                " positional arguments, the schema has " + std::to_string(limit));
    }
    for (size_t i = 0; i < positional.size(); ++i) {
        bound[i] = std::move(positional[i]);
        given[i] = true;
    }
    for (auto& [key, value] : keywords) {
        const int at = schema->find(key);
        if (at < 0) return invalidInput(op.name() + ": no parameter named '" + key + "'");
        if (given[static_cast<size_t>(at)]) return invalidInput(op.name() + ": '" + key + "' is given twice");
        bound[static_cast<size_t>(at)] = std::move(value);
        given[static_cast<size_t>(at)] = true;
    }
    for (size_t i = 0; i < params.size(); ++i) {
        if (!given[i]) {
            if (!params[i].hasDefault)
                return invalidInput(op.name() + ": argument '" + params[i].name + "' is missing");
            bound[i] = params[i].defaultValue;
            continue;
        }
        if (!accepts(params[i], bound[i]))
            return invalidInput(op.name() + ": argument '" + params[i].name + "' is of the wrong kind");
        if (params[i].list && params[i].listSize > 0 && bound[i].isNumber())
            bound[i] = Argument(std::vector<Argument>(static_cast<size_t>(params[i].listSize), bound[i]));
        else if (params[i].list && params[i].kind == ParamKind::Int && bound[i].isNumber())
            bound[i] = Argument(std::vector<Argument>{bound[i]});
    }
    if (const Param* param = misplacedNumber(op, bound))
        return invalidInput(op.name() + ": argument '" + param->name + "' is a number and must be a tensor");
    return bound;
}

const TensorType& Value::type() const {
    static const TensorType kNothing = TensorType::contiguous(DType::F32, {});
    return m_node && m_node->type().tensor() ? *m_node->type().tensor() : kNothing;
}
SymInt Value::size(int64_t dim) const {
    const SymDims& all = sizes();
    const int64_t at = dim < 0 ? dim + rank() : dim;
    return at >= 0 && at < rank() ? all[static_cast<size_t>(at)] : SymInt(1);
}
Value Value::operator[](int64_t position) const {
    if (!m_node) return *this;
    return m_builder->call("operator.getitem", {Argument(m_node), position});
}

/// A call as Python writes it: of an operator without a row, or of one of Python's operators on tensors.
static bool isPythonCall(const Op& op, const std::vector<Argument>& args) {
    const auto isTensor = [](const Argument& arg) { return arg.node() && arg.node()->type().tensor(); };
    if (op.schema() != nullptr && op.schema()->params.size() != args.size())
        return false;  // binding says what is missing
    return op.isOpaque() || (op.is(Tag::Symbolic) && op.name().starts_with("operator.") &&
                             std::any_of(args.begin(), args.end(), isTensor));
}

Value GraphBuilder::call(const Op& op, std::vector<Argument> positional, NamedArguments keywords,
                         std::string_view name) {
    if (m_error) return Value(*this, nullptr);
    if (isPythonCall(op, positional)) {
        auto type = inferTorchCall(op, positional, keywords);
        Node& node = m_graph->call(op, std::move(positional), type ? std::move(*type) : ValueType(OpaqueType{}),
                                   m_before, name, std::move(keywords));
        return add(node);
    }
    auto bound = bindArguments(op, std::move(positional), std::move(keywords));
    if (!bound) {
        fail(std::move(bound).error());
        return Value(*this, nullptr);
    }
    return callBound(op, std::move(*bound), name);
}
Value GraphBuilder::callBound(const Op& op, std::vector<Argument> args, std::string_view name) {
    if (m_error) return Value(*this, nullptr);
    auto type = inferCall(op, args);
    const bool found = !type && m_foundType && op.schema()->returns.size() == 1 && !op.schema()->returns[0].list &&
                       sizeDependsOnData(op, args);
    if (found) type = *m_foundType;
    if (!type) {
        fail(std::move(type).error());
        return Value(*this, nullptr);
    }
    return add(m_graph->call(op, std::move(args), std::move(*type), m_before, name));
}
Value GraphBuilder::callAs(ValueType type, std::string_view op, std::vector<Argument> args) {
    if (m_error) return Value(*this, nullptr);
    return add(m_graph->call(requireOp(op), std::move(args), std::move(type), m_before));
}
Value GraphBuilder::add(Node& node) {
    m_graph->setProvenance(node, m_provenance);
    m_created.push_back(&node);
    return Value(*this, &node);
}

namespace {
Value binary(std::string_view op, const Value& a, const OperandValue& b) {
    if (!a) return a;
    if (b.argument().node() == nullptr && !b.argument().isNumber()) return b.value();  // b failed
    return a.builder().call(op, {a, b.argument()});
}
}  // namespace
Value operator+(const Value& a, const OperandValue& b) { return binary("aten.add.Tensor", a, b); }
Value operator-(const Value& a, const OperandValue& b) { return binary("aten.sub.Tensor", a, b); }
Value operator*(const Value& a, const OperandValue& b) { return binary("aten.mul.Tensor", a, b); }
Value operator/(const Value& a, const OperandValue& b) { return binary("aten.div.Tensor", a, b); }
Value operator-(const Value& a) { return unary("aten.neg.default", a); }

Value unary(std::string_view op, const Value& x) { return x ? x.builder().call(op, {x}) : x; }
Value permute(const Value& x, const std::vector<int64_t>& dims) {
    return x ? x.builder().call("aten.permute.default", {x, Argument(dims)}) : x;
}
Value transposeLast(const Value& x) {
    std::vector<int64_t> dims(static_cast<size_t>(x.rank()));
    std::iota(dims.begin(), dims.end(), 0);
    if (dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return permute(x, dims);
}
Value view(const Value& x, const SymDims& sizes) {
    return x ? x.builder().call("aten.view.default", {x, Argument(sizes)}) : x;
}
Value expand(const Value& x, const SymDims& sizes) {
    return x ? x.builder().call("aten.expand.default", {x, Argument(sizes)}) : x;
}
Value unsqueeze(const Value& x, int64_t dim) { return x ? x.builder().call("aten.unsqueeze.default", {x, dim}) : x; }
Value squeezeDims(const Value& x, const std::vector<int64_t>& dims) {
    return x ? x.builder().call("aten.squeeze.dims", {x, Argument(dims)}) : x;
}
Value sum(const Value& x, const std::vector<int64_t>& dims, bool keepDim) {
    return x ? x.builder().call("aten.sum.dim_IntList", {x, Argument(dims), keepDim}) : x;
}
Value convert(const Value& x, DType dtype) {
    if (!x || x.dtype() == dtype) return x;
    return x.builder().call("prims.convert_element_type.default", {x, dtype});
}
Value full(GraphBuilder& builder, const SymDims& sizes, const Scalar& value, DType dtype, Device device) {
    return builder.call("aten.full.default", {Argument(sizes), Argument(value)},
                        {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
}
Value where(const Value& condition, const Value& yes, const Value& no) {
    return condition ? condition.builder().call("aten.where.self", {condition, yes, no}) : condition;
}

Value Decomposition::in(size_t position) const {
    if (Node* node = arg(position).node()) return Value(*m_builder, node);
    // A number in a tensor's place.
    const auto number = scalar(op().schema()->params[position].name);
    CT_CHECK(number, "a decomposition asks only for operands that are there");
    constexpr DType kKinds[] = {DType::Bool, DType::I64, DType::F32, DType::C64};
    return full(*m_builder, {}, *number, kKinds[number->index()], {});
}
OperandValue Decomposition::any(size_t position) const {
    if (arg(position).node()) return in(position);
    if (arg(position).get<Expr>()) return OperandValue(arg(position));
    const auto literal = scalar(op().schema()->params[position].name);
    CT_CHECK(literal.has_value(), "a decomposition asks only for operands that are there");
    return *literal;
}
std::vector<Value> Decomposition::list(std::string_view param) const {
    std::vector<Value> values;
    const Argument& value = arg(param);
    if (Node* tuple = value.node()) {
        if (const TupleType* types = tuple->type().tuple())
            for (size_t i = 0; i < types->size(); ++i)
                values.push_back(Value(*m_builder, tuple)[static_cast<int64_t>(i)]);
    } else if (const auto* items = value.list()) {
        for (const Argument& item : *items) values.emplace_back(*m_builder, item.node());
    }
    return values;
}
namespace {
template <class T>
T acceptedByBuild(Result<T> result) {
    if (!result) throw RefusedArgument(std::move(result).error());
    return std::move(*result);
}
}  // namespace
int64_t Decomposition::integerOr(std::string_view param, int64_t fallback) const {
    return acceptedByBuild(integer(param, fallback));
}
std::vector<int64_t> Decomposition::integersOf(std::string_view param) const {
    return acceptedByBuild(integers(param));
}
int64_t Decomposition::dimOf(std::string_view param, int64_t rank) const { return acceptedByBuild(dim(param, rank)); }
std::vector<int64_t> Decomposition::dimsOf(std::string_view param, int64_t rank, bool emptyIsAll) const {
    return acceptedByBuild(dims(param, rank, emptyIsAll));
}
SymDims Decomposition::sizesOf(std::string_view param) const { return acceptedByBuild(sizes(param)); }

Derivation::Derivation(const Node& node, GraphBuilder& builder, std::vector<Value> results,
                       std::vector<Value> gradients)
    : Decomposition(node, builder),
      m_results(std::move(results)),
      m_gradients(std::move(gradients)),
      m_inputs(node.args().size()),
      m_needed(node.args().size(), true) {}
Value& Derivation::input(size_t position, size_t item) {
    auto& slots = m_inputs[position];
    if (slots.size() <= item) slots.resize(item + 1);
    return slots[item];
}
bool Derivation::needs(size_t position) const {
    return m_needed[position] && position < count() && (arg(position).node() || arg(position).list());
}

}  // namespace cutaway
