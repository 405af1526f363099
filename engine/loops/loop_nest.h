#pragma once
// LoopNest: a kernel as code, ready to be printed. Statements over scalars and vectors; nothing is left to be chosen.
//
// Expressions are those of kernels without Reduce, and with these besides:
//   Var(n)             a variable; vars[n] has its type and lanes
//   Load(b, i, step)   lanes i, i + step, ...; Load(b, i) with a vector i: each lane at an index of its own. A step
//                      Where(c, s, 0) of scalars is printed as one load or the other.
//   ramp(x)            x, x + 1, ... of the vector loop over x
//   active(x)          which lanes of the vector loop over x stand for elements; all but in the last step
//   lane(v, k)         lane k of a vector
//   lanes_from(v, k)   lanes k, k + 1, ... of a vector; behind its last, its first
//   lanes_xor(v, k)    of each lane the one whose number differs in the bits of k: within a warp
// An operation has the lanes of its operands; scalars among them are spread. Lanes that are not active are computed but
// neither loaded nor stored, and no fault is reported for them.
#include <array>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/loops/loop_plan.h"

namespace cutaway {

enum class Map : uint8_t {
    Serial,
    Parallel,  // an outermost loop: the runtime gives parts of its range to threads
};

struct Stmt;
using Body = std::vector<Stmt>;

/// For axis = from; axis < to; axis += lanes. With several lanes a vector loop: Var and Load hold `lanes` elements.
struct For {
    int axis = 0;
    Expr from, to;
    int lanes = 1;
    Map map = Map::Serial;
    Body body;
    int accumulators = 1;  // states that its vectors go to in turn, so that none waits; until splitAccumulators
    bool whole = false;    // its last vector has all lanes
    int unrollJam = 1;     // its vectors that go through the loops inside together; until unrollAndJam
};
struct If {
    Expr condition;  // Bool, one lane
    Body body;
};
/// An axis that follows from others.
struct Index {
    int axis = 0;
    Expr value;
};
struct Let {
    int var = 0;
    Expr value;
};
/// Declares the states of a reduction, with the reducer's identity. These three are gone after lowerReductions.
struct Alloc {
    int reducer = 0;
    DType body = DType::F32;
    std::vector<int> states;
};
/// One element into the states; `active`: null, or the lanes that count.
struct Accumulate {
    int reducer = 0;
    std::vector<int> states;
    Expr value, at, active;
};
/// Combines other states of the same reducer, given as expressions, into these: those of a part, or of other lanes.
struct Combine {
    int reducer = 0;
    std::vector<int> states;
    std::vector<Expr> with;
};
/// Mutable variables: declared with a first value, then set.
struct Declare {
    int var = 0;
    Expr value;
};
struct Set {
    int var = 0;
    Expr value;
};
enum class StoreHow : uint8_t {
    Puts,
    Adds,    // to what stands there, lane by lane
    Atomic,  // adds while other threads do
};
struct Store {
    int buffer = 0;           // or below zero: ~buffer is the number of a scratch array
    Expr index, step, value;  // step: null for one element or for a vector of indices
    StoreHow how = StoreHow::Puts;
};
/// From here on all lanes see what any lane has stored to scratch memory (on GPUs, a barrier of the block).
struct Barrier {};
/// Asks for the memory of an element that is read or written soon, which may lie outside of the buffer. Without it all
/// is computed the same.
struct Prefetch {
    int buffer = 0;
    Expr index;
    bool toWrite = false;
};
/// A matrix, `rows` by `columns`, into other memory of its dtype with its columns as rows. What stands in a row side by
/// side is `step` away from what stands so in the next.
struct Transpose {
    struct Side {
        int buffer = 0;  // as of Store
        Expr index, step;
    };
    Side to, from;
    Expr rows, columns;
    std::array<Expr*, 6> values() { return {&to.index, &to.step, &from.index, &from.step, &rows, &columns}; }
};
struct Stmt {
    std::variant<For, If, Index, Let, Alloc, Accumulate, Combine, Declare, Set, Store, Barrier, Prefetch, Transpose>
        node;
};

struct NestVar {
    DType dtype = DType::F32;
    int lanes = 1;
    bool changes = false;
};
/// An array of the nest's own, which each thread has: "c0", "c1", ...
struct Scratch {
    DType dtype = DType::F32;
    int64_t count = 0;
};
struct LoopNest {
    std::string name;
    std::vector<KernelBuffer> buffers;  // the kernel's, then workspace
    std::vector<std::string> sizes;
    std::vector<NestVar> vars;
    std::vector<Scratch> scratch;
    Body body;
    int lanes = 1;     // of its vector loops
    int warp = 0;      // lanes that hand values to each other in registers (LoopTarget)
    int threads = 1;   // that its lanes are, each some that lie side by side; more than lanes: of several groups, each
                       // with steps of the parallel loop and scratch memory of its own
    SymInt range = 1;  // steps of the parallel loop, in elements
    int64_t unit = 1;  // elements of the range that its lanes take at once: a vector, or a step for each group

    /// Where a load or store goes.
    DType memoryOf(const Expr& load) const;
    DType memoryOf(int buffer) const {
        return buffer < 0 ? scratch[static_cast<size_t>(~buffer)].dtype : buffers[static_cast<size_t>(buffer)].dtype;
    }
    int newVar(DType dtype, int count = 1, bool changes = false);
    Expr var(int number) const { return Expr::var(number, vars[static_cast<size_t>(number)].dtype); }
};

/// Memory that the nests of one kernel hand on to each other.
struct Workspace {
    DType dtype = DType::F32;
    SymInt count;
};
struct LoweredKernel {
    std::vector<LoopNest> nests;  // run one after the other
    std::vector<Workspace> workspace;
    /// Named after what it does on its target: the same in every program. Empty until it has been lowered.
    std::string function = {};
    bool checks = false;  // an index or a divisor may come from data: it may fail

    /// That of one of its nests.
    std::string functionOf(size_t nest) const {
        return function + (nest == 0 ? std::string() : "_" + std::to_string(nest));
    }
};

/// A step on the way from kernel and plan to nests, as the loop window shows it.
struct LoopStep {
    std::string name, text;
};
/// `target`: the one that the plan was made for. With `steps`, the text after each.
LoweredKernel lowerLoops(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target,
                         std::vector<LoopStep>* steps = nullptr);

/// Lanes of the expression's value.
int lanesOf(const LoopNest& nest, const Expr& expr);
/// Where lanes are threads: before which statement which vectors go to memory that all of them read, since the
/// statement, or one behind it in the same body, reads lanes of them (`lane`, `lanes_from`) as they are by then.
std::map<const Stmt*, std::vector<int>> sharedBefore(const Body& body);
/// Calls visit for every statement, outer ones first.
void forEachStmt(const Body& body, const std::function<void(const Stmt&)>& visit);

/// Every expression of this statement, without those of statements inside; null ones are left out.
template <class Visit>
void forEachValue(Stmt& stmt, const Visit& visit) {
    const auto each = [&](Expr& e) {
        if (e) visit(e);
    };
    std::visit(
        [&](auto& own) {
            using S = std::decay_t<decltype(own)>;
            if constexpr (std::is_same_v<S, For>) {
                each(own.from);
                each(own.to);
            } else if constexpr (std::is_same_v<S, If>) {
                each(own.condition);
            } else if constexpr (std::is_same_v<S, Store>) {
                each(own.index);
                each(own.step);
                each(own.value);
            } else if constexpr (std::is_same_v<S, Accumulate>) {
                each(own.value);
                each(own.at);
                each(own.active);
            } else if constexpr (std::is_same_v<S, Combine>) {
                for (Expr& with : own.with) each(with);
            } else if constexpr (std::is_same_v<S, Prefetch>) {
                each(own.index);
            } else if constexpr (std::is_same_v<S, Transpose>) {
                for (Expr* e : own.values()) each(*e);
            } else if constexpr (!std::is_same_v<S, Alloc> && !std::is_same_v<S, Barrier>) {
                each(own.value);
            }
        },
        stmt.node);
}

/// The same of all statements of a body, outer ones first.
template <class Visit>
void forEachValueIn(Body& body, const Visit& visit) {
    for (Stmt& stmt : body) {
        forEachValue(stmt, visit);
        if (auto* loop = std::get_if<For>(&stmt.node)) forEachValueIn(loop->body, visit);
        if (auto* branch = std::get_if<If>(&stmt.node)) forEachValueIn(branch->body, visit);
    }
}

}  // namespace cutaway
