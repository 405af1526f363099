#include <set>

#include "engine/loops/index.h"
#include "engine/loops/kernel_rules.h"
#include "engine/loops/reduction_axes.h"
#include "engine/loops/rewrite_reductions.h"

namespace cutaway {
namespace {

bool isDivision(const Expr& e) {
    return (e->kind == ExprKind::FloorDiv || e->kind == ExprKind::Mod) && e->dtype == DType::I64;
}

/// What indices divide the axis by: d, if (c*x + rest) is divided by c*d. Only divisors of the size, each a multiple of
/// the one before, none below `least`.
std::vector<int64_t> divisorsOf(const std::vector<Expr>& roots, const Loop& loop, int64_t least) {
    const int64_t size = loop.size.asInt().value_or(0);
    std::set<int64_t> found;
    forEachExpr(roots, [&](const Expr& e) {
        if (!isDivision(e)) return;
        const auto divisor = e->operands[1].asInt();
        const auto affine = divisor ? affineIn(e->operands[0], loop.axis) : std::nullopt;
        const auto step = affine ? affine->coefficient.asInt() : std::nullopt;
        if (!step || *step <= 0 || *divisor % *step != 0) return;
        const int64_t own = *divisor / *step;
        if (own >= least && own < size && size % own == 0) found.insert(own);
    });
    std::vector<int64_t> chain;
    for (const int64_t own : found)
        if (chain.empty() || own % chain.back() == 0) chain.push_back(own);
    return chain;
}

size_t divisionsIn(const std::vector<Expr>& roots) {
    size_t count = 0;
    forEachExpr(roots, [&](const Expr& e) { count += isDivision(e); });
    return count;
}

/// Indices and conditions, with what is known of the axes; those inside of loads, too.
Expr simplified(const Expr& root, IndexSimplifier& indices) {
    std::unordered_map<const ExprNode*, Expr> done;
    const auto walk = [&](auto&& self, const Expr& e) -> Expr {
        if (const auto found = done.find(&*e); found != done.end()) return found->second;
        std::vector<Expr> operands;
        bool changed = false;
        for (const Expr& operand : e->operands) {
            operands.push_back(self(self, operand));
            changed |= &*operands.back() != &*operand;
        }
        const Expr result = indices.simplify(changed ? withOperands(e, std::move(operands)) : e);
        done.emplace(&*e, result);
        return result;
    };
    return walk(walk, root);
}

class Splitter {
  public:
    Splitter(Kernel& kernel, const TargetInfo& target)
        : m_kernel(&kernel), m_target(target.loops), m_nextAxis(firstFreeAxis(kernel)) {}

    std::vector<std::string> run() {
        splitStores();
        splitReductions();
        return std::move(m_said);
    }

  private:
    std::vector<Expr> roots() const {
        std::vector<Expr> all;
        for (const KernelStore& store : m_kernel->stores) all.insert(all.end(), {store.index, store.value});
        return all;
    }
    /// What the parts of an axis are, from the slowest on, and the axis as a sum of them.
    std::pair<std::vector<Loop>, Expr> partsOf(const Loop& loop, const std::vector<int64_t>& divisors) {
        std::vector<Loop> parts;
        Expr sum = Expr::integer(0);
        int64_t above = loop.size.value();
        for (size_t i = divisors.size() + 1; i-- > 0;) {
            const int64_t unit = i == 0 ? 1 : divisors[i - 1];
            parts.push_back({m_nextAxis++, SymInt(above / unit)});
            const Expr digit = Expr::make(ExprKind::Mul, {Expr::axis(parts.back().axis), Expr::integer(unit)});
            sum = Expr::make(ExprKind::Add, {sum, digit});
            above = unit;
        }
        return {std::move(parts), sum};
    }
    IndexSimplifier indices(const std::vector<Expr>& values) const {
        IndexSimplifier simplifier;
        const auto add = [&](const std::vector<Loop>& loops) {
            for (const Loop& loop : loops) simplifier.setSize(loop.axis, loop.size);
        };
        add(m_kernel->outer);
        for (const KernelStore& store : m_kernel->stores) add(store.inner);
        forEachExpr(values, [&](const Expr& e) {
            if (isReduce(e)) add(reduceLoops(e));
        });
        return simplifier;
    }
    void say(const Loop& loop, const std::vector<Loop>& parts) {
        std::string text;
        for (const Loop& part : parts) text += (text.empty() ? "" : " times ") + part.size.text();
        m_said.push_back("x" + std::to_string(loop.axis) + " < " + loop.size.text() + " runs as " + text);
    }

    /// Whether a reduction over as many elements is kept for the inner loop of the stores, which then has to be one
    /// loop.
    bool meetsKept(const Loop& loop) const {
        bool found = false;
        forEachExpr(roots(), [&](const Expr& e) {
            if (!isReduce(e) || reduceLoops(e).size() != 1 || !(reduceLoops(e)[0].size == loop.size)) return;
            found |= costsMuch(e->operands[0]);
        });
        return found;
    }
    void splitStores() {
        std::vector<Loop> loops = m_kernel->outer;
        for (const KernelStore& store : m_kernel->stores)
            for (const Loop& loop : store.inner)
                if (std::find(loops.begin(), loops.end(), loop) == loops.end()) loops.push_back(loop);
        for (const Loop& loop : loops) {
            if (!loop.size.isInt() || meetsKept(loop)) continue;
            const std::vector<int64_t> divisors = divisorsOf(roots(), loop, m_target.lanes);
            if (!divisors.empty()) splitLoop(loop, divisors);
        }
    }
    void splitLoop(const Loop& loop, const std::vector<int64_t>& divisors) {
        const auto found = partsOf(loop, divisors);
        const auto& parts = found.first;
        const Kernel before = *m_kernel;
        const size_t divisions = divisionsIn(roots());
        const auto replace = [&](std::vector<Loop>& all) {
            const auto at = std::find(all.begin(), all.end(), loop);
            if (at != all.end()) all.insert(all.erase(at), parts.begin(), parts.end());
        };
        replace(m_kernel->outer);
        for (KernelStore& store : m_kernel->stores) replace(store.inner);
        IndexSimplifier simplifier = indices(roots());
        const Expr whole = found.second;
        const auto renamed = [&](const Expr& e) {
            const Expr moved = replaceAxes(e, [&](int axis) { return axis == loop.axis ? whole : Expr(); });
            return simplified(moved, simplifier);
        };
        for (KernelStore& store : m_kernel->stores) {
            store.index = renamed(store.index);
            store.value = renamed(store.value);
        }
        if (divisionsIn(roots()) < divisions) say(loop, parts);
        else *m_kernel = before;
    }

    void splitReductions() {
        ReductionAxes axes(m_nextAxis);
        m_nextAxis = 1 << 20;  // of parts, until they are numbered by their places
        ReductionRewriter rewriter([&](const Expr& reduction) { return splitReduction(reduction, axes); });
        for (KernelStore& store : m_kernel->stores) store.value = rewriter.rewrite(store.value);
    }
    Expr splitReduction(const Expr& reduction, ReductionAxes& axes) {
        std::vector<Loop> loops = reduceLoops(reduction);
        Expr body = reduction->operands[0];
        IndexSimplifier simplifier = indices({reduction});
        bool changed = false;
        for (size_t i = 0; i < loops.size(); ++i) {
            const Loop loop = loops[i];
            if (!loop.size.isInt() || meetsKept(loop)) continue;
            const std::vector<int64_t> divisors = divisorsOf({body}, loop, m_target.lanes);
            if (divisors.empty()) continue;
            const auto [parts, sum] = partsOf(loop, divisors);
            for (const Loop& part : parts) simplifier.setSize(part.axis, part.size);
            const Expr whole = sum;
            const Expr moved =
                simplified(replaceAxes(body, [&](int axis) { return axis == loop.axis ? whole : Expr(); }), simplifier);
            if (divisionsIn({moved}) >= divisionsIn({body})) continue;
            say(loop, parts);
            body = moved;
            loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
            loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(i), parts.begin(), parts.end());
            i += parts.size() - 1;
            changed = true;
        }
        return changed ? axes.numbered(static_cast<int>(reduction->integer), loops, body) : reduction;
    }

    Kernel* m_kernel;
    LoopTarget m_target;
    int m_nextAxis;
    std::vector<std::string> m_said;
};

}  // namespace

std::vector<std::string> splitAxes(Kernel& kernel, const TargetInfo& target) { return Splitter(kernel, target).run(); }

}  // namespace cutaway
