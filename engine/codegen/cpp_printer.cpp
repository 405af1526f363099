#include "engine/codegen/cpp_printer.h"

#include "engine/codegen/cpp_expr.h"
#include "engine/codegen/cpp_operation.h"
#include "engine/codegen/unique_exprs.h"
#include "engine/codegen/vector_loop.h"
#include "engine/schedule/index.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

std::string num(int64_t value) { return std::to_string(value) + "L"; }

/// A block of generated code: what is defined in it is visible in the blocks inside.
struct Scope {
    Scope* parent = nullptr;
    std::string text, indent;
    std::vector<std::string> symbols;  // loop symbols that it binds
    std::unordered_map<const ExprNode*, Code> known;

    void line(const std::string& code) { text += indent + code + "\n"; }
};

/// A loop body to be printed: a reduction to fold, or a store.
struct Task {
    Expr reduction;  // or null:
    const Store* store = nullptr;
    std::vector<Loop> loops;
    int stage = 0;  // reductions that it needs belong to earlier ones
    std::string accumulator;
};

class CppPrinter {
  public:
    explicit CppPrinter(const Kernel& kernel) : m_kernel(kernel) {}

    PrintedKernel print() {
        nameInnermostLoopsApart(m_kernel);
        intern();
        m_vector = chooseVectorLoop(m_kernel);
        Scope top;
        top.indent = "    ";
        for (size_t i = 0; i < m_kernel.buffers.size(); ++i) {
            const KernelBuffer& buffer = m_kernel.buffers[i];
            const std::string type = (buffer.written ? "" : "const ") + cppMemoryType(buffer.dtype) + "*";
            top.line(type + " __restrict " + buffer.name + " = (" + type + ")p[" + std::to_string(i) + "];");
        }
        for (size_t i = 0; i < m_kernel.sizes.size(); ++i)
            top.line("const long " + m_kernel.sizes[i] + " = s[" + std::to_string(i) + "];");
        printOuter(top);
        PrintedKernel printed;
        printed.source = "extern \"C\" void " + m_kernel.name +
                         "(void* const* p, const long* s, long begin, long end, int* fault) {\n" + top.text + "}\n";
        printed.helpers = std::move(m_helpers);
        printed.range = m_range;
        return printed;
    }

  private:
    // ---- expressions made unique, so that equal ones are one address
    void intern() {
        for (Store& store : m_kernel.stores) {
            store.index = unique(store.index);
            store.value = unique(store.value);
        }
    }
    Expr unique(const Expr& expr) { return m_exprs.unique(expr); }
    const std::set<std::string>& freeSymbols(const Expr& expr) { return m_exprs.freeSymbols(expr); }
    bool isVector(const Expr& expr) {
        for (const std::string& symbol : freeSymbols(expr))
            if (m_vector.symbols.contains(symbol)) return true;
        return false;
    }

    // ---- loops
    std::string size(const SymInt& value, Scope& scope) {
        return value.isInt() ? num(value.value()) : emit(unique(value.expr()), scope).text;
    }

    void printOuter(Scope& top) {
        std::vector<Loop> parallel = m_kernel.outer;
        std::optional<Loop> vectorLoop;
        if (m_vector.outer && !parallel.empty()) {
            vectorLoop = parallel.back();
            parallel.pop_back();
        }
        if (parallel.empty() && vectorLoop) {
            m_range = vectorLoop->size;
            vectorBlock(top, vectorLoop->symbol, "begin", "end", false, [&](Scope& scope) { printRow(scope); });
            return;
        }
        for (const Loop& loop : parallel) m_range = m_range * loop.size;
        Scope body;
        body.parent = &top;
        body.indent = top.indent + "    ";
        std::vector<std::string> sizes;
        for (const Loop& loop : parallel) {
            sizes.push_back(size(loop.size, top));
            body.symbols.push_back(loop.symbol);
        }
        std::string rest = "i";
        for (size_t d = parallel.size(); d-- > 0;) {
            const bool last = d == 0;
            body.line("const long " + parallel[d].symbol + " = " + (last ? rest : rest + " % " + sizes[d]) + ";");
            if (!last) rest = "(" + rest + " / " + sizes[d] + ")";
        }
        if (vectorLoop) {
            const std::string end = size(vectorLoop->size, top);
            vectorBlock(body, vectorLoop->symbol, "0L", end, isMultiple(vectorLoop->size),
                        [&](Scope& scope) { printRow(scope); });
        } else {
            printRow(body);
        }
        top.line("for (long i = begin; i < end; ++i) {");
        top.text += body.text;
        top.line("}");
    }
    static bool isMultiple(const SymInt& size) { return size.isInt() && size.value() % kLanes == 0; }

    /// The body once as a lambda, run on whole vectors and on the remainder.
    template <class Body>
    void vectorBlock(Scope& parent, const std::string& symbol, const std::string& from, const std::string& to,
                     bool whole, Body&& print) {
        Scope body;
        body.parent = &parent;
        body.indent = parent.indent + "    ";
        body.symbols = {symbol};
        print(body);
        const std::string name = "block" + std::to_string(m_next++), at = "at" + std::to_string(m_next++);
        parent.line("auto " + name + " = [&](const long " + symbol + ", const int n) __attribute__((always_inline)) {");
        parent.text += body.text;
        parent.line("};");
        parent.line("long " + at + " = " + from + ";");
        parent.line("for (; " + at + " + 16 <= " + to + "; " + at + " += 16) " + name + "(" + at + ", 16);");
        if (!whole) parent.line("if (" + at + " < " + to + ") " + name + "(" + at + ", int(" + to + " - " + at + "));");
    }

    /// Everything that belongs to one row: stage by stage, loops of equal size together, then plain stores.
    void printRow(Scope& row) {
        std::set<std::string> bound;
        for (const Loop& loop : m_kernel.outer) bound.insert(loop.symbol);
        std::vector<Task> tasks;
        std::set<const ExprNode*> seen;
        for (const Store& store : m_kernel.stores) {
            int needed = 0;
            forEachExpr({store.value}, [&](const Expr& e) {
                if (!reduceKindOf(e)) return;
                const auto& free = freeSymbols(e);
                if (!std::includes(bound.begin(), bound.end(), free.begin(), free.end())) return;
                // What does not change from row to row is computed outside, when it is first asked for.
                if (&homeOf(e, row) != &row) return;
                const int stage = std::stoi(e->operands[1]->name.substr(1));
                needed = std::max(needed, stage);
                if (seen.insert(&*e).second) tasks.push_back({e, nullptr, reduceLoops(e), stage, ""});
            });
            if (!store.inner.empty()) tasks.push_back({Expr(), &store, store.inner, needed + 1, ""});
        }
        std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.stage < b.stage; });
        std::vector<bool> done(tasks.size());
        for (size_t i = 0; i < tasks.size(); ++i) {
            if (done[i]) continue;
            std::vector<Task> together;
            for (size_t j = i; j < tasks.size(); ++j) {
                if (done[j] || tasks[j].stage != tasks[i].stage || !sameLoops(tasks[j], tasks[i])) continue;
                together.push_back(tasks[j]);
                done[j] = true;
            }
            printLoops(row, together);
        }
        for (const Store& store : m_kernel.stores)
            if (store.inner.empty()) printStore(row, store);
    }
    static bool sameLoops(const Task& a, const Task& b) {
        // Stores keep their own symbols, so they share loops with each other only.
        if (a.loops.size() != b.loops.size() || (a.store == nullptr) != (b.store == nullptr)) return false;
        for (size_t i = 0; i < a.loops.size(); ++i)
            if (a.loops[i].symbol != b.loops[i].symbol || !(a.loops[i].size == b.loops[i].size)) return false;
        return true;
    }

    void printLoops(Scope& home, std::vector<Task>& tasks) {
        const std::vector<Loop> loops = tasks[0].loops;
        for (Task& task : tasks)
            if (task.reduction) openReduction(home, task);
        printNest(home, loops, 0, tasks);
        for (Task& task : tasks)
            if (task.reduction) closeReduction(home, task);
    }
    void printNest(Scope& parent, const std::vector<Loop>& loops, size_t depth, std::vector<Task>& tasks) {
        auto body = [&](Scope& scope) {
            if (depth + 1 < loops.size()) return printNest(scope, loops, depth + 1, tasks);
            for (Task& task : tasks)
                if (task.reduction) foldReduction(scope, task);
                else printStore(scope, *task.store);
        };
        const Loop& loop = loops[depth];
        const std::string end = size(loop.size, parent);
        if (m_vector.symbols.contains(loop.symbol))
            return vectorBlock(parent, loop.symbol, "0L", end, isMultiple(loop.size), body);
        Scope inner;
        inner.parent = &parent;
        inner.indent = parent.indent + "    ";
        inner.symbols = {loop.symbol};
        body(inner);
        parent.line("for (long " + loop.symbol + " = 0; " + loop.symbol + " < " + end + "; ++" + loop.symbol + ") {");
        parent.text += inner.text;
        parent.line("}");
    }

    // ---- reductions: open declares the accumulator, fold adds one element (or vector), close makes the value
    static bool isPosition(ReduceKind kind) { return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin; }
    /// Accumulators hold vectors when the body does.
    /// A value that does not vary along a vector loop counts once for every lane all the same.
    bool foldsVectors(const Task& task) {
        return isVector(task.reduction->operands[0]) || isVector(task.reduction) ||
               m_vector.symbols.contains(task.loops.back().symbol);
    }
    static DType accumulatorType(ReduceKind kind, DType dtype) {
        return kind == ReduceKind::Sum && dtype == DType::F32 ? DType::F64 : dtype;
    }
    std::string neutral(ReduceKind kind, DType dtype) {
        switch (kind) {
            case ReduceKind::Sum: return "(" + cppValueType(accumulatorType(kind, dtype)) + ")0";
            case ReduceKind::Prod: return "(" + cppValueType(dtype) + ")1";
            case ReduceKind::Any: return "false";
            case ReduceKind::All: return "true";
            case ReduceKind::Max:
            case ReduceKind::ArgMax: return dtype == DType::Bool ? "false" : cppLowest(dtype);
            case ReduceKind::Min:
            case ReduceKind::ArgMin: return dtype == DType::Bool ? "true" : cppHighest(dtype);
        }
        return {};
    }
    void openReduction(Scope& home, Task& task) {
        const ReduceKind kind = *reduceKindOf(task.reduction);
        const DType dtype = task.reduction->operands[0]->dtype, type = accumulatorType(kind, dtype);
        task.accumulator = "a" + std::to_string(m_next++);
        const bool vector = foldsVectors(task);
        const std::string initial = neutral(kind, dtype);
        home.line((vector ? cppVectorType(type) : cppValueType(type)) + " " + task.accumulator + " = " +
                  (vector ? "bc_" + cppValueSuffix(type) + "(" + initial + ")" : initial) + ";");
        if (isPosition(kind))
            home.line(vector ? "V_i64 " + task.accumulator + "_at = bc_i64(-1L);"
                             : "long " + task.accumulator + "_at = -1L;");
    }
    void foldReduction(Scope& scope, Task& task) {
        const ReduceKind kind = *reduceKindOf(task.reduction);
        const Expr body = task.reduction->operands[0];
        const DType dtype = body->dtype, type = accumulatorType(kind, dtype);
        const bool vector = foldsVectors(task);
        // Lanes beyond the end of the loop must not count when the loop itself is the vector.
        const bool partial = vector && m_vector.symbols.contains(task.loops.back().symbol);
        Code value = emit(body, scope);
        if (vector) value = widened(value, dtype);
        const std::string& acc = task.accumulator;
        if (isPosition(kind)) {
            m_helpers.insert("argbest");
            const Code at = emit(unique(position(task.loops)), scope);
            const std::string name = kind == ReduceKind::ArgMax ? "argMax" : "argMin";
            if (vector)
                scope.line(name + "V(" + acc + ", " + acc + "_at, " + value.text + ", " + widened(at, DType::I64).text +
                           ", " + (partial ? "lanesBelow(n)" : "bc_b(true)") + ");");
            else scope.line(name + "S(" + acc + ", " + acc + "_at, " + value.text + ", " + at.text + ");");
            return;
        }
        std::string operand = value.text;
        if (type != dtype)
            operand = vector ? "CONV(" + operand + ", " + cppVectorType(type) + ")"
                             : "(" + cppValueType(type) + ")" + operand;
        if (partial)
            operand = "(n == 16 ? " + operand + " : sel(lanesBelow(n), " + operand + ", bc_" + cppValueSuffix(type) +
                      "(" + neutral(kind, dtype) + ")))";
        scope.line(acc + " = " + combine(kind, type, vector, acc, operand) + ";");
    }
    std::string combine(ReduceKind kind, DType type, bool vector, const std::string& a, const std::string& b) {
        const std::string narrow = vector ? "" : "(" + cppValueType(type) + ")";
        switch (kind) {
            case ReduceKind::Sum: return type == DType::Bool ? a + " | " + b : narrow + "(" + a + " + " + b + ")";
            case ReduceKind::Prod: return type == DType::Bool ? a + " & " + b : narrow + "(" + a + " * " + b + ")";
            case ReduceKind::Any: return a + " | " + b;
            case ReduceKind::All: return a + " & " + b;
            case ReduceKind::Max:
            case ReduceKind::Min: {
                const bool max = kind == ReduceKind::Max;
                if (type == DType::Bool) return a + (max ? " | " : " & ") + b;
                m_helpers.insert("minmax");
                return std::string(max ? "max" : "min") + (vector ? "V(" : "S(") + a + ", " + b + ")";
            }
            default: CT_CHECK(false, "positions are folded by their own function");
        }
    }
    static Expr position(const std::vector<Loop>& loops) {
        Expr at = Expr::integer(0);
        for (const Loop& loop : loops)
            at = Expr::make(ExprKind::Add,
                            {Expr::make(ExprKind::Mul, {at, loop.size.expr()}), Expr::symbol(loop.symbol)});
        return at;
    }
    void closeReduction(Scope& home, Task& task) {
        const ReduceKind kind = *reduceKindOf(task.reduction);
        const DType dtype = task.reduction->operands[0]->dtype, type = accumulatorType(kind, dtype);
        const bool across = foldsVectors(task) && !isVector(task.reduction);  // lanes are parts of one result
        std::string result = task.accumulator;
        const std::string name = "t" + std::to_string(m_next++);
        if (across) {
            const std::string one = task.accumulator + "_1";
            if (isPosition(kind)) {
                home.line(cppValueType(type) + " " + one + " = " + task.accumulator + "[0]; long " + one +
                          "_at = " + task.accumulator + "_at[0];");
                home.line("for (int k = 1; k < 16; ++k) " +
                          std::string(kind == ReduceKind::ArgMax ? "argMaxS(" : "argMinS(") + one + ", " + one +
                          "_at, " + "(" + cppValueType(type) + ")" + task.accumulator + "[k], " + task.accumulator +
                          "_at[k]);");
            } else {
                const std::string lane = type == DType::Bool
                                             ? "(" + task.accumulator + "[k] != 0)"
                                             : "(" + cppValueType(type) + ")" + task.accumulator + "[k]";
                home.line(cppValueType(type) + " " + one + " = " + neutral(kind, dtype) + ";");
                home.line("LANES " + one + " = " + combine(kind, type, false, one, lane) + ";");
            }
            result = one;
        }
        const bool vector = isVector(task.reduction);
        const DType out = task.reduction->dtype;
        if (isPosition(kind)) result += "_at";
        else if (type != dtype)
            result = vector ? "CONV(" + result + ", " + cppVectorType(dtype) + ")"
                            : "(" + cppValueType(dtype) + ")" + result;
        home.line("const " + (vector ? cppVectorType(out) : cppValueType(out)) + " " + name + " = " + result + ";");
        home.known[&*task.reduction] = {name, vector};
    }

    // ---- stores and expressions
    void printStore(Scope& scope, const Store& store) {
        const DType memory = bufferType(store.buffer);
        Code value = emit(store.value, scope);
        const DType type = store.value->dtype;
        CT_CHECK(computeTypeOf(memory) == computeTypeOf(type), "stored values have their buffer's type");
        const std::string symbol = activeVector(scope);
        const auto affine = symbol.empty() ? std::nullopt : affineIn(store.index, symbol);
        if (symbol.empty() || (affine && affine->coefficient.asInt() == 0 && !value.vector)) {
            const std::string at = emit(store.index, scope).text;
            if (isHalf(memory)) {
                m_helpers.insert("mem_" + cppMemorySuffix(memory));
                scope.line("wr_" + cppMemorySuffix(memory) + "(" + store.buffer + " + " + at + ", " + value.text +
                           ");");
            } else {
                scope.line(store.buffer + "[" + at + "] = " + value.text + ";");
            }
            return;
        }
        m_helpers.insert("mem_" + cppMemorySuffix(memory));
        const std::string suffix = cppMemorySuffix(memory), vector = widened(value, type).text;
        if (affine) {
            const std::string at = store.buffer + " + " + addressAlong(*affine, symbol, scope);
            if (affine->coefficient.asInt() == 1) scope.line("st_" + suffix + "(" + at + ", n, " + vector + ");");
            else
                scope.line("sts_" + suffix + "(" + at + ", " + emit(unique(affine->coefficient), scope).text + ", n, " +
                           vector + ");");
        } else {
            scope.line("stg_" + suffix + "(" + store.buffer + ", " +
                       widened(emit(store.index, scope), DType::I64).text + ", n, " + vector + ");");
        }
    }
    DType bufferType(const std::string& name) const {
        for (const KernelBuffer& buffer : m_kernel.buffers)
            if (buffer.name == name) return buffer.dtype;
        CT_CHECK(false, "kernels name only their own buffers");
    }
    /// A read-only buffer, which view.dtype may read as another type than the one that was written.
    std::string bufferAs(const std::string& name, DType memory) const {
        const std::string type = cppMemoryType(memory);
        return type == cppMemoryType(bufferType(name)) ? name : "((const " + type + "*)" + name + ")";
    }
    /// The symbol that is a vector in this scope, if any.
    std::string activeVector(const Scope& scope) const {
        for (const Scope* s = &scope; s != nullptr; s = s->parent)
            for (const std::string& symbol : s->symbols)
                if (m_vector.symbols.contains(symbol)) return symbol;
        return {};
    }
    std::string addressAlong(const Affine& affine, const std::string& symbol, Scope& scope) {
        const Code rest = emit(unique(affine.rest), scope);
        const std::string step =
            affine.coefficient.asInt() == 1 ? symbol : emit(unique(affine.coefficient), scope).text + " * " + symbol;
        return "(" + rest.text + " + " + step + ")";
    }

    /// The innermost scope that binds something the expression reads; it is computed there, once.
    Scope& homeOf(const Expr& expr, Scope& scope) {
        const auto& free = freeSymbols(expr);
        for (Scope* s = &scope;; s = s->parent) {
            for (const std::string& symbol : s->symbols)
                if (free.contains(symbol)) return *s;
            if (s->parent == nullptr) return *s;
        }
    }
    Code emit(const Expr& expr, Scope& scope) {
        switch (expr->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return {cppLiteral(expr), false};
            case ExprKind::Symbol:
                if (!m_vector.symbols.contains(expr->name)) return {expr->name, false};
                break;
            default: break;
        }
        Scope& home = homeOf(expr, scope);
        if (auto found = home.known.find(&*expr); found != home.known.end()) return found->second;
        if (auto kind = reduceKindOf(expr)) {
            std::vector<Task> tasks = {{expr, nullptr, reduceLoops(expr), 0, ""}};
            printLoops(home, tasks);
            return home.known.at(&*expr);
        }
        m_exprs.keep(expr);
        const bool vector = isVector(expr);
        const std::string code =
            expr->kind == ExprKind::Load ? loadCode(expr, home, vector) : operationCode(expr, home, vector);
        const std::string name = "t" + std::to_string(m_next++);
        home.line("const " + (vector ? cppVectorType(expr->dtype) : cppValueType(expr->dtype)) + " " + name + " = " +
                  code + ";");
        return home.known[&*expr] = {name, vector};
    }

    std::string loadCode(const Expr& expr, Scope& home, bool vector) {
        const DType memory = expr->dtype;
        const std::string buffer = bufferAs(expr->name, memory);
        const Expr& index = expr->operands[0];
        if (!vector) {
            const std::string at = emit(index, home).text;
            if (isHalf(memory)) {
                m_helpers.insert("mem_" + cppMemorySuffix(memory));
                return "rd_" + cppMemorySuffix(memory) + "(" + buffer + " + " + at + ")";
            }
            return buffer + "[" + at + "]" + (memory == DType::Bool ? " != 0" : "");
        }
        const std::string suffix = cppMemorySuffix(memory), symbol = activeVector(home);
        m_helpers.insert("mem_" + suffix);
        if (const auto affine = affineIn(index, symbol);
            affine && !isVector(unique(affine->coefficient)) && !isVector(unique(affine->rest))) {
            const std::string at = buffer + " + " + addressAlong(*affine, symbol, home);
            if (affine->coefficient.asInt() == 1) return "ld_" + suffix + "(" + at + ", n)";
            return "lds_" + suffix + "(" + at + ", " + emit(unique(affine->coefficient), home).text + ", n)";
        }
        return "ldg_" + suffix + "(" + buffer + ", " + emit(index, home).text + ", n)";
    }

    std::string operationCode(const Expr& expr, Scope& home, bool vector) {
        if (expr->kind == ExprKind::Symbol) return "iota(" + expr->name + ")";
        std::vector<Code> in;
        for (const Expr& operand : expr->operands) {
            in.push_back(emit(operand, home));
            if (vector && expr->kind != ExprKind::Cast &&
                !(expr->kind == ExprKind::Call && expr->name == "checked_index")) {
                // A scalar condition chooses between vectors without being spread.
                if (expr->kind == ExprKind::Where && in.size() == 1) continue;
                in.back() = widened(in.back(), operand->dtype);
            }
        }
        return cppOperation(expr, in, vector, m_helpers);
    }

    Kernel m_kernel;  // its expressions made unique
    UniqueExprs m_exprs;
    VectorLoop m_vector;
    std::set<std::string> m_helpers;
    SymInt m_range = 1;
    int m_next = 0;
};

}  // namespace

PrintedKernel printCpp(const Kernel& kernel) { return CppPrinter(kernel).print(); }

std::string cppFile(const std::vector<PrintedKernel>& kernels) {
    std::set<std::string> helpers;
    for (const PrintedKernel& kernel : kernels) helpers.insert(kernel.helpers.begin(), kernel.helpers.end());
    std::string file =
        "// Generated by Cutaway. Kernels are called through pointers; nothing is included.\n" + cppPrelude(helpers);
    for (const PrintedKernel& kernel : kernels) file += "\n" + kernel.source;
    return file;
}

}  // namespace cutaway
