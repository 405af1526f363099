#include "engine/schedule/lowering.h"

#include <numeric>

#include "engine/libraries/choose.h"
#include "engine/ops/op_registry.h"
#include "engine/support/check.h"
#include "engine/support/fault_points.h"

namespace cutaway {

ValueKey resolve(const Node& node) {
    const Node* current = &node;
    if (current->isCall("operator.getitem"))
        if (const Node* tuple = current->arg(0).node()) {
            const auto items = tuple->type().tuple();
            int64_t position = current->arg(1).asInt().value_or(0);
            if (items != nullptr && position < 0) position += static_cast<int64_t>(items->size());
            return {tuple, static_cast<size_t>(position)};
        }
    return {current, 0};
}

ValueKey rootOf(const Node& node) {
    ValueKey key = resolve(node);
    while (key.node->is(Tag::View)) {  // split and unbind, whose value is a tuple of views, included
        const Node* base = key.node->arg(0).node();
        if (base == nullptr) break;
        key = resolve(*base);
    }
    return key;
}

const TensorType* tensorOf(const ValueKey& key) {
    if (const TupleType* tuple = key.node->type().tuple())
        return key.result < tuple->size() ? (*tuple)[key.result].tensor() : nullptr;
    return key.node->type().tensor();
}

std::string valueName(const ValueKey& key) {
    return "v" + std::to_string(index(key.node->id())) + (key.result ? "_" + std::to_string(key.result) : "");
}

std::optional<int64_t> knownNumel(const SymDims& sizes) { return numel(sizes).asInt(); }

namespace {
bool fromData(const Expr& expr) {
    bool loads = false;
    forEachExpr({expr}, [&](const Expr& e) { loads |= e->kind == ExprKind::Load; });
    return loads;
}
}  // namespace

/// What the lowering rule of a call sees; the Lowering gives it the operands.
class NodeContext final : public LowerContext {
  public:
    NodeContext(Lowering& lowering, const Node& node, size_t result, const std::vector<Expr>& at)
        : LowerContext(node.op(), node.args(), node.type()), m_lowering(&lowering), m_result(result), m_index(&at) {}

    size_t resultNumber() const override { return m_result; }
    const std::vector<Expr>& index() const override { return *m_index; }
    Expr loadAt(size_t operand, const std::vector<Expr>& at) override {
        const Node* node = arg(operand).node();
        CT_CHECK(node != nullptr, "a rule loads tensors; numbers are read by numberAt");
        return operandAt(*node, at);
    }
    Expr loadItemAt(size_t operand, size_t item, const std::vector<Expr>& at) override {
        if (const auto* items = arg(operand).list()) return operandAt(*(*items)[item].node(), at);
        return m_lowering->value(ValueKey{arg(operand).node(), item}, at);
    }
    Expr reduce(ReduceKind kind, const SymDims& sizes, const Body& body) override {
        return m_lowering->reduce(kind, sizes, body);
    }
    Expr reduceUpTo(ReduceKind kind, const Expr& count, const std::function<Expr(const Expr&)>& body) override {
        const SymInt size(m_lowering->m_indices.simplify(Expr::cast(count, DType::I64)));
        return m_lowering->reduce(kind, {size}, [&](const std::vector<Expr>& at) { return body(at[0]); });
    }
    Expr guarded(const Expr& condition, const std::function<Expr()>& value, const Expr& otherwise) override {
        const Expr simple = m_lowering->m_indices.simplify(condition);
        if (simple->kind == ExprKind::Bool) return simple->integer ? value() : otherwise;
        m_lowering->m_guards.push_back(simple);
        const Expr inside = value();
        m_lowering->m_guards.pop_back();
        return Expr::where(simple, inside, Expr::cast(otherwise, inside->dtype));
    }

    Expr divisorWhereRead(const Expr& divisor) override {
        const std::vector<Expr>& guards = m_lowering->m_guards;
        if (guards.empty() || fromData(divisor)) return divisor;
        const Expr read = std::accumulate(guards.begin() + 1, guards.end(), guards[0],
                                          [](const Expr& all, const Expr& next) { return all && next; });
        return Expr::where(read, divisor, Expr::integer(1, divisor->dtype));
    }

    /// First index at which operand 0 was read, for probing.
    std::vector<Expr> firstRead;

  private:
    Expr operandAt(const Node& node, const std::vector<Expr>& at) {
        if (firstRead.empty() && !at.empty()) firstRead = at;
        std::vector<Expr> simple;
        for (const Expr& e : at) simple.push_back(m_lowering->m_indices.simplify(Expr::cast(e, DType::I64)));
        return m_lowering->value(node, simple);
    }
    Lowering* m_lowering;
    size_t m_result;
    const std::vector<Expr>* m_index;
};

Expr Lowering::axis(int number, const SymInt& size) {
    m_indices.setSize(number, size);
    return size.asInt() == 1 ? Expr::integer(0) : Expr::axis(number);
}

Expr Lowering::loop(const SymInt& size) { return axis(m_loops++, size); }

Expr Lowering::address(const TensorType& type, const std::vector<Expr>& at, const SymInt& offset) {
    CT_CHECK(at.size() == type.sizes.size(), "one index per dim");
    std::vector<Expr> terms = {offset.expr()};
    for (size_t d = 0; d < at.size(); ++d)
        if (type.sizes[d].asInt() != 1) terms.push_back(Expr::make(ExprKind::Mul, {type.strides[d].expr(), at[d]}));
    return m_indices.simplify(Expr::make(ExprKind::Add, std::move(terms)));
}

Expr Lowering::load(const ValueKey& root, const TensorType& type, const SymInt& offset, const std::vector<Expr>& at) {
    m_loaded.insert(root);
    Expr where = address(type, at, offset);
    if (!m_guards.empty()) {
        Expr all = m_guards[0];
        for (size_t i = 1; i < m_guards.size(); ++i) all = all && m_guards[i];
        where = Expr::where(all, where, Expr::integer(0));
    }
    const Expr element = Expr::load(valueName(root), where, type.dtype);
    return Expr::cast(element, computeTypeOf(type.dtype));
}

Expr Lowering::value(const ValueKey& key, const std::vector<Expr>& at) {
    const Node& node = *key.node;
    const TensorType* type = tensorOf(key);
    CT_CHECK(type != nullptr, "elements are asked of tensors");
    const ValueKey root = node.is(Tag::View) ? rootOf(node) : key;
    if (!m_inlines(root)) {
        const TensorType* base = tensorOf(root);
        if (base == nullptr) {
            fail(node, " looks at a value that is not a tensor");
            return constantOf(Scalar(int64_t{0}), computeTypeOf(type->dtype));
        }
        // A view as another dtype counts its offset in elements of its own.
        const SymInt skipped = type->dtype == base->dtype ? base->offset
                                                          : floorDiv(base->offset * SymInt(byteSize(base->dtype)),
                                                                     SymInt(byteSize(type->dtype)));
        return load(root, *type, type->offset - skipped, at);
    }
    Hasher hasher;
    hasher.add(static_cast<uint64_t>(index(node.id()))).add(static_cast<uint64_t>(key.result));
    for (const Expr& e : at) hasher.add(e->hash);
    for (const Expr& e : m_guards) hasher.add(e->hash);
    const uint64_t slot = hasher.finish().low;
    for (const auto& [known, expr] : m_memo[slot])
        if (known == at) return expr;
    const Expr result = rule(node, key.result, at);
    m_memo[slot].emplace_back(at, result);
    return result;
}

Expr Lowering::value(const Node& node, const std::vector<Expr>& at) { return value(resolve(node), at); }

Expr spoiled(const Expr& value, std::string_view where, const Op& op) {
    const FaultEffect effect =
        faultsAsked() && isFloating(value->dtype) ? faultEffect(where, op.name()) : FaultEffect::None;
    if (effect == FaultEffect::Nan) return constantLike(value, std::numeric_limits<double>::quiet_NaN());
    return effect == FaultEffect::Wrong ? constantLike(value, 1) + constantLike(value, 2) * call1("abs", value) : value;
}

Expr Lowering::rule(const Node& node, size_t result, const std::vector<Expr>& at) {
    const DType own = tensorOf({&node, result})->dtype, dtype = computeTypeOf(own);
    const OpDef* def = node.op().def();
    Expr expr;
    if (def != nullptr && def->lower) {
        NodeContext context(*this, node, result, at);
        expr = def->lower(context);
    }
    if (!expr) {
        fail(node, " (" + node.op().name() + ") needs its operand in memory");
        return constantOf(Scalar(int64_t{0}), dtype);
    }
    expr = Expr::cast(expr, dtype);
    if (m_roundsHalves && isHalf(own)) expr = call1(own == DType::F16 ? "round_f16" : "round_bf16", expr);
    expr = spoiled(expr, "kernel", node.op());
    return m_shared ? spoiled(expr, "fusion", node.op()) : expr;
}

Expr Lowering::reduce(ReduceKind kind, const SymDims& sizes, const LowerContext::Body& body) {
    // Axes have negative numbers until the body is known.
    std::vector<Loop> loops;
    std::vector<Expr> at;
    for (const SymInt& size : sizes) {
        const int temporary = --m_temporaries;
        at.push_back(axis(temporary, size));
        if (at.back()->kind == ExprKind::Axis) loops.push_back({temporary, size});
    }
    const Expr inside = body(at);
    // A reduction over one element is that element, except where its position is the result.
    if (loops.empty() && kind != ReduceKind::ArgMax && kind != ReduceKind::ArgMin) return inside;
    if (loops.empty()) return Expr::integer(0);
    if (!m_axes) m_axes.emplace(m_loops);
    const Expr reduction = m_axes->numbered(static_cast<int>(kind), loops, inside);
    for (const Loop& loop : reduceLoops(reduction)) m_indices.setSize(loop.axis, loop.size);
    return reduction;
}

int costOf(const Expr& root) {
    int cost = 0;
    forEachExpr({root}, [&](const Expr& e) {
        switch (e->kind) {
            case ExprKind::Call: cost += isCheapCall(e) ? 1 : 10; break;
            case ExprKind::Reduce: ++cost; break;
            case ExprKind::Axis:
            case ExprKind::Div:
            case ExprKind::Pow: cost += 4; break;
            case ExprKind::FloorDiv:
            case ExprKind::Mod: cost += e->dtype == DType::I64 ? 2 : 4; break;
            case ExprKind::Symbol:
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: break;
            default:
                if (e->dtype != DType::I64) ++cost;
        }
    });
    return cost;
}

namespace {

std::string dtypeProblem(const TensorType& type) {
    if (isComplex(type.dtype) || (isFloating(type.dtype) && byteSize(type.dtype) < 2) || byteSize(type.dtype) == 0 ||
        type.dtype == DType::Bits16 || type.dtype == DType::Bits1x8)
        return "kernels do not compute in " + std::string(info(type.dtype).abbreviation);
    return {};
}

std::string whyNotLowered(const Node& node, const TargetInfo& target) {
    if (isCopiedConcatenation(node, target))
        return "more than " + std::to_string(target.fusion.parts) + " parts are copied rather than chosen between";
    const OpDef* def = node.op().def();
    if (def == nullptr || !def->lower) return node.op().name() + " has no lowering rule";
    for (const Argument& arg : node.args())
        if (arg.get<std::complex<double>>()) return "kernels do not compute with complex numbers";
    std::string problem;
    auto check = [&](const ValueType& type) {
        if (const TensorType* tensor = type.tensor(); tensor != nullptr && problem.empty())
            problem = dtypeProblem(*tensor);
    };
    for (const Node* input : node.inputs()) {
        check(input->type());
        check(rootOf(*input).node->type());  // a view as another dtype reads its memory
        if (const TupleType* tuple = input->type().tuple())
            for (const ValueType& item : *tuple) check(item);
    }
    check(node.type());
    if (const TupleType* tuple = node.type().tuple())
        for (const ValueType& item : *tuple) check(item);
    if (node.type().tensor() == nullptr && node.type().tuple() == nullptr) problem = "its result is not a tensor";
    return problem;
}

/// Fills the iteration space of a reduction from the index at which it first read its operand.
void describeSpace(RuleFacts& facts, const Node& node, const Expr& expr, const std::vector<Expr>& firstRead,
                   const SymDims& out) {
    Expr reduction;
    forEachExpr({expr}, [&](const Expr& e) {
        if (isReduce(e)) reduction = e;
    });
    const TensorType* operand = node.args().empty() || node.arg(size_t{0}).node() == nullptr
                                    ? nullptr
                                    : node.arg(size_t{0}).node()->type().tensor();
    std::vector<bool> reduced;
    if (operand != nullptr && firstRead.size() == operand->sizes.size())
        for (const Expr& e : firstRead) {
            if (e->kind == ExprKind::Axis) reduced.push_back(e->integer < 0);
            else if (e.asInt() == 0) reduced.push_back(false);
        }
    // Windows may leave out parts of the operand or read them repeatedly; the counts below tell such reductions apart.
    SymInt kept = 1, folded = 1, windows = 1;
    for (size_t d = 0; operand != nullptr && d < reduced.size(); ++d)
        (reduced[d] ? folded : kept) = (reduced[d] ? folded : kept) * operand->sizes[d];
    bool ragged = false;
    for (const Loop& loop : reduceLoops(reduction)) {
        ragged |= fromData(loop.size.expr());
        if (!ragged) windows = windows * loop.size;
    }
    if (!ragged && operand != nullptr && reduced.size() == operand->sizes.size() && kept == numel(out) &&
        folded == windows) {
        facts.spaceSizes = operand->sizes;
        facts.reduced = reduced;
        return;
    }
    facts.spaceSizes = out;
    facts.reduced.assign(out.size(), false);
    // Dims that no reduction reads become the row, so that reductions are computed once for all of it.
    std::set<int64_t> read;
    forEachExpr({expr}, [&](const Expr& e) {
        if (!isReduce(e)) return;
        forEachExpr({e}, [&](const Expr& part) {
            if (part->kind == ExprKind::Axis) read.insert(part->integer);
        });
    });
    bool shared = false;
    for (size_t d = 0; d < out.size(); ++d) {
        facts.reduced[d] = !(out[d] == SymInt(1)) && !read.contains(static_cast<int64_t>(d));
        shared |= facts.reduced[d];
    }
    if (shared) return;
    for (const Loop& loop : reduceLoops(reduction)) {
        if (fromData(loop.size.expr())) continue;  // each row has a length of its own, which is not a dim of a space
        facts.spaceSizes.push_back(loop.size);
        facts.reduced.push_back(true);
    }
}

bool hasNoElements(const TensorType& type) {
    return std::find(type.sizes.begin(), type.sizes.end(), SymInt(0)) != type.sizes.end();
}

/// Whether a run fails where the divisor is zero.
bool dividesByData(const ExprNode& expr) {
    const bool divides = expr.kind == ExprKind::Div || expr.kind == ExprKind::FloorDiv || expr.kind == ExprKind::Mod;
    return divides && !isFloating(expr.dtype) && fromData(expr.operands[1]);
}

/// Why the call cannot be a kernel even by itself; empty if it can.
std::string tooMuch(const std::set<ValueKey>& loaded, size_t results, const std::vector<Expr>& values,
                    const TensorType& result, const FusionLimits& limits) {
    const size_t buffers = loaded.size() + results;
    if (buffers > limits.buffers)
        return "it reads and writes " + std::to_string(buffers) + " tensors, and a kernel has at most " +
               std::to_string(limits.buffers);
    size_t operations = 0;
    bool indexed = false;
    forEachExpr(values, [&](const Expr& e) {
        ++operations;
        indexed |= e->kind == ExprKind::Call && e->name == "checked_index";
    });
    if (operations > limits.operations)
        return "the kernel would have more than " + std::to_string(limits.operations) + " operations";
    // Where an index is out of range a kernel reads the first element before it fails.
    for (const ValueKey& key : loaded)
        if (indexed && hasNoElements(*tensorOf(key)) && !hasNoElements(result))
            return "it reads '" + key.node->name() + "', which has no elements";
    return {};
}

/// Why no one loop makes all results that are read; empty if one does.
std::string tooFarApart(const RuleFacts& facts, const Node& node, const std::vector<size_t>& results) {
    const SymInt full = numel(facts.spaceSizes);
    SymInt rows = 1;
    for (size_t d = 0; d < facts.reduced.size(); ++d)
        if (!facts.reduced[d]) rows = rows * facts.spaceSizes[d];
    for (const size_t result : results)
        if (const SymInt count = numel(tensorOf({&node, result})->sizes); !(count == full) && !(count == rows))
            return "its results have different iteration spaces";
    return {};
}

}  // namespace

std::vector<size_t> readResults(const Node& node) {
    const size_t results = node.type().tuple() ? node.type().tuple()->size() : 1;
    std::set<size_t> read;
    for (const Node* user : node.users())
        if (user->isCall("operator.getitem")) read.insert(resolve(*user).result);
        else
            for (size_t i = 0; i < results; ++i) read.insert(i);
    if (read.empty())
        for (size_t i = 0; i < results; ++i) read.insert(i);
    return {read.begin(), read.end()};
}

RuleFacts probe(const Node& node, const TargetInfo& target) {
    RuleFacts facts;
    facts.whyNot = whyNotLowered(node, target);
    if (!facts.whyNot.empty()) return facts;
    const std::vector<size_t> results = readResults(node);
    std::set<ValueKey> loaded;
    std::vector<Expr> values;
    for (const size_t result : results) {
        const TensorType* type = tensorOf({&node, result});
        if (type == nullptr) {
            facts.whyNot = "result " + std::to_string(result) + " is not a tensor";
            return facts;
        }
        Lowering lowering([](const ValueKey&) { return false; });
        std::vector<Expr> at;
        for (size_t d = 0; d < type->sizes.size(); ++d) at.push_back(lowering.loop(type->sizes[d]));
        NodeContext context(lowering, node, result, at);
        const Expr expr = node.op().def()->lower(context);
        loaded.insert(lowering.loaded().begin(), lowering.loaded().end());
        if (!expr) facts.whyNot = "its lowering rule declines this call";
        else if (!lowering.problem().empty()) facts.whyNot = lowering.problem().sentence();
        else if (values.push_back(expr); !node.is(Tag::View))
            facts.whyNot = tooMuch(loaded, values.size(), values, *type, target.fusion);
        if (!facts.whyNot.empty()) return facts;
        bool reduces = false;
        forEachExpr({expr}, [&](const Expr& e) {
            reduces |= isReduce(e);
            facts.divides |= dividesByData(*e);
            facts.checks |= facts.divides || (e->kind == ExprKind::Call && e->name == "checked_index");
            if (e->kind == ExprKind::Call && e->name != "checked_index" && !target.hasFunction(e->name))
                facts.whyNot = "kernels have no function '" + e->name + "'" +
                               (isKernelFunction(e->name) ? " on " + std::string(target.name.text) : "");
        });
        if (!facts.whyNot.empty()) return facts;
        if (reduces && !facts.reduces) describeSpace(facts, node, expr, context.firstRead, type->sizes);
        facts.reduces |= reduces;
        facts.loads |= !lowering.loaded().empty();
        facts.cost = std::max(facts.cost, costOf(expr));
    }
    if (!facts.reduces) {
        facts.spaceSizes = tensorOf({&node, results[0]})->sizes;
        facts.reduced.assign(facts.spaceSizes.size(), false);
    }
    if (!node.is(Tag::View)) facts.whyNot = tooFarApart(facts, node, results);
    facts.lowers = facts.whyNot.empty();
    return facts;
}

}  // namespace cutaway
