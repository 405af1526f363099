// A group of nodes as one kernel: loops, stored values as expressions, parameters in order of first use.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/schedule/fusion.h"
#include "engine/support/check.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

/// Loops of a space, split into outer and inner.
struct SpaceLoops {
    std::vector<Loop> outer, inner;
    std::vector<Expr> full, rows;  // index per dim of the space; rows has 0 for reduced dims
};
SpaceLoops makeLoops(Lowering& lowering, const Space& space) {
    SpaceLoops loops;
    for (size_t d = 0; d < space.sizes.size(); ++d) {
        const bool inner = space.reduced[d];
        const Expr axis = lowering.loop(space.sizes[d]);
        loops.full.push_back(axis);
        loops.rows.push_back(inner ? Expr::integer(0) : axis);
        if (axis->kind == ExprKind::Axis)
            (inner ? loops.inner : loops.outer).push_back({static_cast<int>(d), space.sizes[d]});
    }
    return loops;
}

std::vector<Expr> reductionsIn(const Expr& expr) {
    std::vector<Expr> reductions;
    forEachExpr({expr}, [&](const Expr& e) {
        if (isReduce(e)) reductions.push_back(e);
    });
    return reductions;
}
std::set<int> axesRead(const Expr& expr) {
    std::set<int> axes;
    forEachExpr({expr}, [&](const Expr& e) {
        if (e->kind == ExprKind::Axis) axes.insert(static_cast<int>(e->integer));
    });
    return axes;
}
bool readsAny(const std::set<int>& axes, const std::vector<Loop>& loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) { return axes.contains(loop.axis); });
}

/// A reduction that reads an axis of an inner loop would run once per element of that loop.
std::string misplacedReduction(const std::vector<KernelStore>& stores) {
    struct ReductionReads {
        std::set<int> axes;        // that it reads, in the sizes of its loops, too
        std::vector<Expr> nested;  // in its body
    };
    std::unordered_map<const ExprNode*, ReductionReads> all;  // lookups only
    const auto it = [&](const Expr& reduction) -> const ReductionReads& {
        const auto [slot, fresh] = all.try_emplace(&*reduction);
        if (fresh) slot->second = {axesRead(reduction), reductionsIn(reduction->operands[0])};
        return slot->second;
    };
    for (const KernelStore& store : stores)
        for (const Expr& reduction : reductionsIn(store.value)) {
            // Inside another reduction's body it may read only what is outside of that one.
            for (const Expr& nested : it(reduction).nested) {
                std::vector<Loop> bound = reduceLoops(reduction);
                for (const Loop& loop : reduceLoops(nested))
                    std::erase_if(bound, [&](const Loop& outer) { return outer.axis == loop.axis; });
                if (readsAny(it(nested).axes, bound))
                    return "the reduction would be computed again for every step of another one";
            }
            if (readsAny(it(reduction).axes, store.inner))
                return "the reduction would be computed again for every element of the row";
        }
    return {};
}

/// Memory order of the first store decides the order of the outer loops, so that the innermost one walks along it.
void orderLoops(std::vector<Loop>& loops, const Expr& address) {
    std::vector<std::pair<int64_t, Loop>> keyed;
    for (const Loop& loop : loops) {
        const auto affine = affineIn(address, loop.axis);
        const auto stride = affine ? affine->coefficient.asInt() : std::nullopt;
        if (!stride) return;
        keyed.emplace_back(*stride, loop);
    }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < loops.size(); ++i) loops[i] = keyed[i].second;
}

/// Renames values to b0, b1, ..., stored ones first, and lists who they are.
void nameBuffers(Kernel& kernel, const std::set<ValueKey>& loaded, const std::vector<ValueKey>& stored,
                 std::vector<ValueKey>& bindings) {
    for (const ValueKey& key : stored) {
        bindings.push_back(key);
        kernel.buffers.push_back({tensorOf(key)->dtype, true});
    }
    std::map<std::string, ValueKey> byName;
    for (const ValueKey& key : loaded) byName.emplace(valueName(key), key);
    std::map<std::string, int> numbers;
    std::unordered_map<const ExprNode*, Expr> done;
    auto rename = [&](auto&& self, const Expr& expr) -> Expr {
        if (auto found = done.find(&*expr); found != done.end()) return found->second;
        std::vector<Expr> operands;
        bool changed = false;
        for (const Expr& operand : expr->operands) {
            operands.push_back(self(self, operand));
            changed |= &*operands.back() != &*operand;
        }
        Expr result = expr;
        if (expr->kind == ExprKind::Load) {
            const auto [slot, fresh] = numbers.emplace(expr->name, static_cast<int>(bindings.size()));
            if (fresh) {
                bindings.push_back(byName.at(expr->name));
                kernel.buffers.push_back({tensorOf(bindings.back())->dtype, false});
            }
            result = Expr::load(bufferName(slot->second), operands[0], expr->dtype);
        } else if (changed) {
            result = withOperands(expr, std::move(operands));
        }
        done.emplace(&*expr, result);
        return result;
    };
    std::vector<Expr> keep;  // addresses are keys while the stores are being replaced
    for (KernelStore& store : kernel.stores) {
        keep.push_back(store.value);
        keep.push_back(store.index);
        store.value = rename(rename, store.value);
        store.index = rename(rename, store.index);
    }
}

/// Sizes may be computed in floats by PyTorch's functions, of which kernels have forms of their own.
bool isForeign(const Expr& e) {
    const auto isFloat = [](const Expr& each) { return each->dtype == DType::F64; };
    return e->kind == ExprKind::Call && !isKernelFunction(e->name) &&
           (isFloat(e) || std::any_of(e->operands.begin(), e->operands.end(), isFloat));
}
Expr sizeInKernel(const Expr& e) { return isForeign(e) ? kernelNumber(e) : Expr(); }
void useKernelFunctions(Kernel& kernel) {
    const auto changed = [](const SymInt& size) {
        return size.isInt() ? size : SymInt(rewriteShared(size.expr(), sizeInKernel));
    };
    for (Loop& loop : kernel.outer) loop.size = changed(loop.size);
    for (KernelStore& store : kernel.stores) {
        for (Loop& loop : store.inner) loop.size = changed(loop.size);
        store.value = rewriteShared(store.value, sizeInKernel);
        store.index = rewriteShared(store.index, sizeInKernel);
    }
}

/// Whether a size is computed by a foreign function.
bool collectSizes(Kernel& kernel) {
    bool foreign = false;
    std::set<std::string> all;
    std::vector<Expr> roots;
    for (const Loop& loop : kernel.outer) roots.push_back(loop.size.expr());
    for (const KernelStore& store : kernel.stores) {
        for (const Loop& loop : store.inner) roots.push_back(loop.size.expr());
        roots.push_back(store.value);
        roots.push_back(store.index);
    }
    forEachExpr(roots, [&](const Expr& e) {
        if (e->kind == ExprKind::Symbol) all.insert(e->name);
        foreign |= isForeign(e);
    });
    kernel.sizes.assign(all.begin(), all.end());
    return foreign;
}

}  // namespace

SymDims Space::outer() const {
    SymDims result = sizes;
    for (size_t d = 0; d < sizes.size(); ++d)
        if (reduced[d]) result[d] = 1;
    return result;
}

std::string Space::text() const {
    std::string kept, folded;
    for (size_t d = 0; d < sizes.size(); ++d) {
        std::string& list = reduced[d] ? folded : kept;
        list += (list.empty() ? "" : ", ") + sizes[d].text();
    }
    return "[" + kept + "]" + (folded.empty() ? "" : " reducing [" + folded + "]");
}

std::vector<ValueKey> storedValues(const Grouping& grouping, const FusionGroup& group) {
    std::set<ValueKey> wanted;
    const int own = grouping.of(*group.members[0]).group;
    for (const Node* member : group.members) {
        auto check = [&](const Node& holder, const ValueKey& key) {
            const auto outside = [&](const Node& reader) {
                const NodeFacts& facts = grouping.of(reader);
                return facts.role != NodeFacts::Role::Lowered || facts.group != own;
            };
            if (anyReader(grouping, holder, outside)) wanted.insert(key);
        };
        // Readers may read some of the elements only, and a division by zero must fail wherever it is.
        if (grouping.of(*member).rule.divides) wanted.insert({member, 0});
        // Projections of tuples are aliases, so readers of each result are told apart here.
        if (member->type().tuple()) {
            for (const Node* user : member->users())
                if (user->isCall("operator.getitem")) check(*user, resolve(*user));
                else wanted.insert({member, 0});
        } else {
            check(*member, {member, 0});
        }
    }
    std::vector<ValueKey> result(wanted.begin(), wanted.end());
    return result;
}

namespace {

/// Which values a kernel of the group computes; all others it loads.
Lowering::Inlines computedBy(const Grouping& grouping, const FusionGroup& group) {
    return [&grouping, own = grouping.of(*group.members[0]).group](const ValueKey& key) {
        const NodeFacts& facts = grouping.of(*key.node);
        return facts.role == NodeFacts::Role::Free || (facts.role == NodeFacts::Role::Lowered && facts.group == own);
    };
}

}  // namespace

LoweringName nameOf(const Grouping& grouping, const FusionGroup& group, const std::vector<ValueKey>& stored) {
    LoweringName name(*grouping.memo, computedBy(grouping, group));
    name.add(group.space.sizes).add(group.members.size() > 1).add(grouping.roundsHalves);
    for (const bool reduced : group.space.reduced) name.add(reduced);
    name.add(static_cast<uint64_t>(stored.size()));
    for (const ValueKey& key : stored) name.addValue(key);
    return name;
}

KernelDraft draftKernel(const Grouping& grouping, const FusionGroup& group, const std::vector<ValueKey>& stored) {
    KernelDraft draft;
    Lowering lowering(computedBy(grouping, group), group.members.size() > 1, grouping.roundsHalves);
    const SpaceLoops loops = makeLoops(lowering, group.space);
    const SymDims rows = group.space.outer();
    const SymInt fullCount = numel(group.space.sizes), rowCount = numel(rows);
    draft.stored = stored;
    for (const ValueKey& key : draft.stored) {
        const TensorType& type = *tensorOf(key);
        const SymInt count = numel(type.sizes);
        KernelStore store;
        store.buffer = static_cast<int>(draft.kernel.stores.size());
        std::vector<Expr> at;
        if (count == rowCount) {
            at = reindex(loops.rows, rows, type.sizes);
        } else if (count == fullCount) {
            at = reindex(loops.full, group.space.sizes, type.sizes);
            store.inner = loops.inner;
        } else {
            draft.problem = {{}, key.node, " does not fit a loop over " + group.space.text()};
            return draft;
        }
        for (Expr& e : at) e = lowering.indices().simplify(e);
        store.value = lowering.value(key, at);
        store.index = lowering.address(type, at, 0);
        draft.kernel.stores.push_back(std::move(store));
        if (!lowering.problem().empty()) {
            draft.problem = lowering.problem();
            return draft;
        }
    }
    draft.problem.text = misplacedReduction(draft.kernel.stores);
    if (!draft.problem.empty()) return draft;
    std::vector<Expr> roots;
    for (const KernelStore& store : draft.kernel.stores) roots.push_back(store.value);
    const FusionLimits& limits = grouping.target->fusion;
    size_t nodes = 0;
    forEachExpr(roots, [&](const Expr&) { ++nodes; });
    if (nodes > limits.operations)
        draft.problem = {"the kernel would have more than " + std::to_string(limits.operations) + " operations"};
    if (lowering.loaded().size() + draft.stored.size() > limits.buffers)
        draft.problem = {"the kernel would have more than " + std::to_string(limits.buffers) + " buffers"};
    for (const ValueKey& key : lowering.loaded()) {
        // Memory that the kernel itself writes cannot be read in it through a view that has no index rule.
        if (std::find(draft.stored.begin(), draft.stored.end(), key) != draft.stored.end())
            draft.problem = {{}, key.node, " must be in memory before it is read here"};
    }
    if (!draft.problem.empty()) return draft;
    draft.kernel.outer = loops.outer;
    if (!draft.kernel.stores.empty()) orderLoops(draft.kernel.outer, draft.kernel.stores[0].index);
    draft.loaded = lowering.loaded();
    return draft;
}

namespace {

/// Whether integer expressions of the kernel have sorted what they load.
bool sortsLoads(const Kernel& kernel) {
    std::vector<Expr> roots;
    for (const KernelStore& store : kernel.stores) roots.insert(roots.end(), {store.value, store.index});
    std::unordered_set<const ExprNode*> loading;  // lookups only
    bool sorts = false;
    forEachExpr(roots, [&](const Expr& e) {
        const bool loads =
            e->kind == ExprKind::Load ||
            std::any_of(e->operands.begin(), e->operands.end(), [&](const Expr& o) { return loading.contains(&*o); });
        if (!loads) return;
        loading.insert(&*e);
        sorts |= e->dtype == DType::I64 && (e->kind == ExprKind::Add || e->kind == ExprKind::Mul);
    });
    return sorts;
}

std::optional<CachedKernel> find(const LoweringMemo& memo, const LoweringName& name) {
    const auto known = memo.kernel(name.finish());
    return known && !known->kernel ? memo.kernel(name.ordered()) : known;
}
void keep(LoweringMemo& memo, const LoweringName& name, const BuiltKernel& built, bool sorts) {
    CachedKernel kept{built.kernel, {}};
    for (const ValueKey& value : built.bindings) {
        const auto number = name.numberOf(value);
        CT_CHECK(number, "a name meets all that a kernel reads and writes");
        kept.bindings.push_back(*number);
    }
    if (sorts) memo.keep(name.finish(), CachedKernel());
    memo.keep(sorts ? name.ordered() : name.finish(), kept);
}

}  // namespace

BuiltKernel buildKernel(const Grouping& grouping, const LoweringName& name, KernelDraft draft) {
    BuiltKernel built;
    built.problem = draft.problem.sentence();
    if (!built.problem.empty()) return built;
    if (collectSizes(draft.kernel)) useKernelFunctions(draft.kernel);
    const bool sorts = sortsLoads(draft.kernel);
    nameBuffers(draft.kernel, draft.loaded, draft.stored, built.bindings);
    built.kernel = std::make_shared<const Kernel>(std::move(draft.kernel));
    // What tests ask to go wrong is asked anew each time.
    if (!faultsAsked()) keep(*grouping.memo, name, built, sorts);
    return built;
}

BuiltKernel buildKernel(const Grouping& grouping, const FusionGroup& group) {
    const std::vector<ValueKey> stored = storedValues(grouping, group);
    const LoweringName name = nameOf(grouping, group, stored);
    const auto found = faultsAsked() ? std::nullopt : find(*grouping.memo, name);
    if (!found) return buildKernel(grouping, name, draftKernel(grouping, group, stored));
    BuiltKernel built{found->kernel, {}, {}};
    for (const size_t number : found->bindings) built.bindings.push_back(name.values()[number]);
    return built;
}

}  // namespace cutaway
