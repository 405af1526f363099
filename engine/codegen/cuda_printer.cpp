#include "engine/codegen/cuda_printer.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/codegen/cpp_expr.h"
#include "engine/codegen/cpp_operation.h"
#include "engine/codegen/cuda_neighbours.h"
#include "engine/codegen/cuda_prelude.h"
#include "engine/expr/expr_parse.h"
#include "engine/ops/lower.h"
#include "engine/support/check.h"
#include "engine/support/hash.h"

namespace cutaway {
namespace {

constexpr int kWarp = 32;                   // threads that hand values to each other in registers
constexpr int64_t kStaticBytes = 48 << 10;  // of shared memory, that arrays of fixed sizes may take

int threadsOf(const LoopNest& nest) { return nest.threads > 1 ? nest.threads : nest.lanes; }
/// Of lanes in a block, each with steps of the parallel loop and scratch memory of its own.
int groupsIn(const LoopNest& nest) { return std::max(nest.threads / nest.lanes, 1); }

class CudaPrinter {
  public:
    explicit CudaPrinter(const LoopNest& nest) : m_nest(&nest) {
        for (size_t i = 0; i < nest.sizes.size(); ++i) m_sizes.emplace(nest.sizes[i], "n" + std::to_string(i));
    }
    /// The function; what it calls goes to `helpers`.
    PrintedFunction print(const std::string& function, std::set<std::string>& helpers) {
        for (size_t i = 0; i < m_nest->buffers.size(); ++i) {
            const KernelBuffer& buffer = m_nest->buffers[i];
            const std::string type = (buffer.written ? "" : "const ") + cppMemoryType(buffer.dtype) + "*";
            line(type + " __restrict__ " + bufferName(static_cast<int>(i)) + " = (" + type + ")p.v[" +
                 std::to_string(i) + "];");
        }
        for (size_t i = 0; i < m_nest->sizes.size(); ++i) {
            const std::string number = std::to_string(i);
            if (symbolDType(m_nest->sizes[i]) == DType::F64)
                line("const double n" + number + " = __longlong_as_double(s.v[" + number + "]);");
            else line("const long n" + number + " = s.v[" + number + "];");
        }
        for (size_t i = 0; i < m_nest->scratch.size(); ++i) {
            const Scratch& scratch = m_nest->scratch[i];
            array(bufferName(~static_cast<int>(i)), cppMemoryType(scratch.dtype), scratch.count,
                  byteSize(scratch.dtype));
        }
        shareVectors();
        body(m_nest->body);
        for (const std::string& helper : m_helpers)
            CT_CHECK(hasCudaHelper(helper), ("kernels for GPUs have no helper " + helper).c_str());
        helpers.merge(m_helpers);
        const std::string faults = m_checks > 0 ? "    int* const fault = faults;\n" : "";
        const auto list = [](size_t count) { return std::to_string(std::max<size_t>(count, 1)); };
        const std::string shared = isDynamic() ? "extern \"C\" __device__ const int " + function +
                                                     "_shared = " + std::to_string(m_sharedBytes) + ";\n"
                                               : "";
        std::string head = shared + "extern \"C\" __global__ void __launch_bounds__(" +
                           std::to_string(threadsOf(*m_nest)) + ") " + function +
                           "(const __grid_constant__ List<void*, " + list(m_nest->buffers.size()) +
                           "> p, const __grid_constant__ List<long, " + list(m_nest->sizes.size()) +
                           "> s, long begin, long end, int* faults) {\n" + faults + arrays() +
                           "    const int k = threadIdx.x" + (groups() > 1 ? " % " + lanes() : "") + ";\n";
        return {std::move(head), std::move(m_text)};
    }

  private:
    /// Whether a launch asks for its shared memory.
    bool isDynamic() const { return m_sharedBytes > kStaticBytes; }
    void line(const std::string& code) { m_text.line(code); }
    void body(const Body& statements) {
        for (const Stmt& stmt : statements) {
            if (const auto shared = m_before.find(&stmt); shared != m_before.end()) share(shared->second);
            std::visit([&](const auto& own) { on(own); }, stmt.node);
        }
    }
    static std::string x(int axis) { return "x" + std::to_string(axis); }
    static std::string t(int var) { return "t" + std::to_string(var); }
    std::string lanes() const { return std::to_string(m_nest->lanes); }
    int groups() const { return groupsIn(*m_nest); }
    /// Which of the block's groups a thread is of.
    std::string group() const { return "threadIdx.x / " + lanes(); }
    /// Lanes that one thread has, side by side.
    int perThread() const { return m_nest->threads > 1 ? std::max(m_nest->lanes / m_nest->threads, 1) : 1; }

    void on(const For& loop) {
        const bool parallel = loop.map == Map::Parallel;
        std::string from = addend(loop.from), to = addend(loop.to), step = loop.lanes > 1 ? lanes() : "1";
        if (parallel) {
            const std::string own = groups() > 1
                                        ? "((long)blockIdx.x * " + std::to_string(groups()) + " + " + group() + ")"
                                        : "(long)blockIdx.x";
            from = "(begin > " + from + " ? begin : " + from + ") + " + own + " * " + step;
            to = "(end < " + to + " ? end : " + to + ")";
            step = "(long)gridDim.x * " + (groups() > 1 ? std::to_string(groups()) + " * " : "") + step;
        }
        const std::string axis = x(loop.axis),
                          last = "end" + std::to_string(m_next++);  // pieces of one loop stand side by side
        line("const long " + last + " = " + to + ";");
        line("for (long " + axis + " = " + from + "; " + axis + " < " + last + "; " + axis + " += " + step + ") {");
        m_text.indent();
        if (loop.lanes > 1) line("const int n = (int)min((long)" + lanes() + ", " + last + " - " + axis + ");");
        if (loop.lanes > 1 && perThread() > 1) side(loop.body);
        else if (loop.lanes > 1) neighbours(loop);
        else body(loop.body);
        m_text.unindent();
        line("}");
    }
    /// What the lane m_lane does. Lanes that stand for no element compute with zeros, and report nothing.
    void oneLane(const Body& statements) {
        const CodeText::Mark begin = m_text.end();
        const int checks = m_checks;
        body(statements);
        if (m_checks > checks) m_text.insertLine(begin, "int* const fault = " + m_lane + " < n ? faults : (int*)0;");
    }
    /// Lanes side by side: what lies side by side in memory, too, is read before and written behind all of them.
    void side(const Body& statements) {
        const std::string count = std::to_string(perThread());
        Body vectors;
        std::vector<Expr> loads;
        std::vector<const Store*> stores;
        const bool plain = std::all_of(statements.begin(), statements.end(), [](const Stmt& stmt) {
            return std::holds_alternative<Let>(stmt.node) || std::holds_alternative<Store>(stmt.node);
        });
        for (const Stmt& stmt : statements) {
            const auto* let = std::get_if<Let>(&stmt.node);
            if (plain && let && lanesOf(*m_nest, let->value) == 1) body({stmt});
            else vectors.push_back(stmt);
        }
        for (Stmt& stmt : vectors) {
            if (!plain) break;
            forEachValue(stmt, [&](const Expr& value) { loadsBeside(value, *m_nest, false, loads); });
            if (const auto* store = std::get_if<Store>(&stmt.node))
                if (store->how == StoreHow::Puts && store->step && store->step.asInt() == 1) stores.push_back(store);
        }
        line("const int m = n - k * " + count + ";");
        const auto declare = [&](const std::string& name, DType dtype) {
            line("__align__(16) " + cppMemoryType(dtype) + " " + name + "[" + count + "];");
        };
        for (const Expr& e : loads) {
            const std::string name = "w" + std::to_string(m_next++);
            declare(name, e->dtype);
            m_text.noteRead(bufferOf(e));
            line(helper("wide", "readWide") + "(" + name + ", " + bufferAs(e) + " + (" + addend(e->operands[0]) +
                 " + k * " + count + "), m);");
            m_wide.push_back({e, name, "j"});
        }
        for (const Store* store : stores) {
            const std::string name = "w" + std::to_string(m_next++);
            declare(name, m_nest->memoryOf(store->buffer));
            m_wideStores.emplace(store, Wide{Expr(), name, "j"});
        }
        line("#pragma unroll");
        line("for (int j = 0; j < " + count + "; ++j) {");
        m_text.indent();
        line("const int l = k * " + count + " + j;");
        m_lane = "l";
        oneLane(vectors);
        m_lane = "k";
        m_text.unindent();
        line("}");
        for (const Store* store : stores) {
            m_text.noteWrite(store->buffer);
            line(helper("wide", "writeWide") + "(" + bufferName(store->buffer) + " + (" + addend(store->index) +
                 " + k * " + count + "), " + m_wideStores.at(store).array + ", m);");
        }
        m_wide.clear();
        m_wideStores.clear();
    }
    void on(const If& branch) {
        line("if (" + value(branch.condition) + ") {");
        m_text.indent();
        body(branch.body);
        m_text.unindent();
        line("}");
    }
    void on(const Index& index) { line("const long " + x(index.axis) + " = " + value(index.value) + ";"); }
    void on(const Let& let) { define("const ", let.var, let.value); }
    void on(const Declare& declare) { define("", declare.var, declare.value); }
    void define(const std::string& prefix, int var, const Expr& expr) {
        line(prefix + cppValueType(m_nest->vars[static_cast<size_t>(var)].dtype) + " " + t(var) + " = " + value(expr) +
             ";");
    }
    void on(const Set& set) { line(t(set.var) + " = " + value(set.value) + ";"); }
    void on(const Barrier&) { line(groups() > 1 ? "__syncwarp(" + ofGroup() + ");" : "__syncthreads();"); }
    /// The lanes of a group, as bits of a warp's.
    std::string ofGroup() const {
        if (m_nest->lanes >= kWarp) return "0xffffffffu";
        const std::string mask = std::to_string((1u << m_nest->lanes) - 1) + "u";
        return groups() > 1 ? "(" + mask + " << (threadIdx.x % 32 - k))" : mask;
    }
    void on(const Prefetch& prefetch) {
        line("asm volatile(\"prefetch.global.L2 [%0];\" :: \"l\"(" + bufferName(prefetch.buffer) + " + (" +
             value(prefetch.index) + ")));");
    }
    /// As one of what is added up.
    std::string addend(const Expr& e) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Symbol:
            case ExprKind::Axis:
            case ExprKind::Var:
            case ExprKind::Load:
            case ExprKind::Add:
            case ExprKind::Sub:
            case ExprKind::Mul:
            case ExprKind::Cast:
            case ExprKind::Call: return value(e);
            default: return "(" + value(e) + ")";
        }
    }
    /// As one of what is multiplied or divided.
    std::string factor(const Expr& e) { return e->operands.empty() ? value(e) : "(" + value(e) + ")"; }
    void on(const Transpose& transpose) {
        const std::string columns = factor(transpose.columns), row = "e / " + columns, column = "e % " + columns;
        const auto element = [&](const Transpose::Side& side, const std::string& i, const std::string& j) {
            const std::string first = side.index.asInt() == 0 ? "" : addend(side.index) + " + ";
            return bufferName(side.buffer) + "[" + first + i + " * " + factor(side.step) + " + " + j + "]";
        };
        m_text.noteRead(transpose.from.buffer);
        m_text.noteWrite(transpose.to.buffer);
        line("for (int e = k; e < " + factor(transpose.rows) + " * " + columns +
             "; e += " + std::to_string(threadsOf(*m_nest)) + ") " + element(transpose.to, column, row) + " = " +
             element(transpose.from, row, column) + ";");
    }
    template <class S>
    void on(const S&) {
        if constexpr (!std::is_same_v<S, Store>) CT_CHECK(false, "reductions are lowered before nests are printed");
    }
    void on(const Store& store) {
        const Expr at = store.index;
        const DType memory = m_nest->memoryOf(store.buffer);
        const bool spread = store.step || lanesOf(*m_nest, at) > 1;
        const std::string step = store.step ? " + " + m_lane + " * (" + value(store.step) + ")" : "";
        std::string buffer = bufferName(store.buffer), place = (step.empty() ? value(at) : addend(at)) + step;
        const std::string stored = value(store.value);
        m_text.noteWrite(store.buffer);
        std::string which = "if (" + m_lane + (spread ? " < n) " : " == 0) ");
        if (const auto wide = m_wideStores.find(&store); wide != m_wideStores.end()) {
            buffer = wide->second.array;
            place = wide->second.place;
            which.clear();
        }
        if (store.how != StoreHow::Puts) {
            // Lanes may have one index, whatever other blocks do.
            CT_CHECK(!isHalf(memory) && memory != DType::Bool, "kernels do not add to halves and bools");
            return line(which + helper("add", "add") + "(" + buffer + " + (" + place + "), " + stored + ");");
        }
        if (isHalf(memory))
            return line(which + helper("mem_" + cppMemorySuffix(memory), "wr_" + cppMemorySuffix(memory)) + "(" +
                        buffer + " + (" + place + "), " + stored + ");");
        line(which + buffer + "[" + place + "] = " + stored + ";");
    }

    /// The body of a loop in which a thread may have neighbours in memory, which it reads first and writes last.
    void neighbours(const For& loop) {
        const std::vector<Neighbours> all = neighboursIn(loop, *m_nest);
        const auto from = [&](const Neighbours& own) {
            const std::string count = std::to_string(own.count);
            return " + (" + value(own.first) + " + k * " + count + "), ";
        };
        std::vector<std::string> arrays;
        for (const Neighbours& own : all) {
            const std::string name = arrays.emplace_back("w" + std::to_string(m_next++));
            const std::string count = std::to_string(own.count);
            line("__align__(16) " + cppMemoryType(own.dtype) + " " + name + "[" + count + "];");
            if (!own.loads.empty()) {
                m_text.noteRead(own.buffer);
                line(helper("wide", "readWide") + "(" + name + ", " + bufferAs(own.loads[0].second) + from(own) +
                     count + ");");
            }
            for (const auto& [place, load] : own.loads) m_wide.push_back({load, name, std::to_string(place)});
            for (const auto& [place, store] : own.stores)
                m_wideStores.emplace(store, Wide{Expr(), name, std::to_string(place)});
        }
        oneLane(loop.body);
        for (size_t i = 0; i < all.size(); ++i) {
            if (all[i].stores.empty()) continue;
            m_text.noteWrite(all[i].buffer);
            line(helper("wide", "writeWide") + "(" + bufferName(all[i].buffer) + from(all[i]) + arrays[i] + ", " +
                 std::to_string(all[i].count) + ");");
        }
        m_wide.clear();
        m_wideStores.clear();
    }

    // ---- what lanes share
    /// An array that the block shares.
    void array(const std::string& name, const std::string& type, int64_t count, int bytes) {
        const int64_t offset = (m_sharedBytes + 15) / 16 * 16;
        m_arrays.push_back({name, type, count, offset});
        m_sharedBytes = offset + groups() * count * bytes;
    }
    /// Arrays for vectors whose lanes others read: an element for each, or for each warp.
    void shareVectors() {
        m_before = sharedBefore(m_nest->body);
        std::map<int64_t, bool> warps;  // by vector: whether only first lanes of warps are read
        LoopNest copy = *m_nest;
        forEachValueIn(copy.body, [&](const Expr& value) {
            forEachExpr({value}, [&](const Expr& e) {
                if (e->kind != ExprKind::Call || (e->name != "lane" && e->name != "lanes_from")) return;
                const bool first =
                    e->name == "lane" && e->operands[1]->kind == ExprKind::Int && e->operands[1]->integer % kWarp == 0;
                const auto slot = warps.emplace(e->operands[0]->integer, first).first;
                slot->second &= first;
            });
        });
        if (m_nest->lanes <= kWarp) {
            m_before.clear();  // registers do
            return;
        }
        for (const auto& [vector, first] : warps) {
            if (first) m_ofWarps.insert(vector);
            const DType dtype = m_nest->vars[static_cast<size_t>(vector)].dtype;
            array(place(vector), cppValueType(dtype), m_nest->lanes / (first ? kWarp : 1),
                  byteSize(computeTypeOf(dtype)));
        }
    }
    static std::string place(int64_t vector) { return "s" + std::to_string(vector); }
    void share(const std::vector<int>& vectors) {
        line("__syncthreads();");
        for (const int vector : vectors) {
            if (m_ofWarps.contains(vector))
                line("if ((k & 31) == 0) " + place(vector) + "[k >> 5] = " + t(vector) + ";");
            else line(place(vector) + "[k] = " + t(vector) + ";");
        }
        line("__syncthreads();");
    }
    /// Another lane's element of a vector.
    std::string across(const Expr& e) {
        const int64_t vector = e->operands[0]->integer;
        const int count = m_nest->lanes;
        std::string lane = value(e->operands[1]);
        if (e->name == "lanes_from") lane = "(k + " + lane + ") % " + lanes();
        if (e->name == "lanes_xor" || count <= kWarp)
            return (e->name == "lanes_xor" ? "__shfl_xor_sync(" : "__shfl_sync(") + ofGroup() + ", " +
                   value(e->operands[0]) + ", " + lane + (groups() > 1 && count < kWarp ? ", " + lanes() : "") + ")";
        if (m_ofWarps.contains(vector)) lane = std::to_string(e->operands[1]->integer / kWarp);
        return place(vector) + "[" + lane + "]";
    }
    /// Declarations of all arrays, in one piece of a size that the launch gives where there is more than blocks have
    /// otherwise.
    std::string arrays() const {
        std::string text;
        if (isDynamic()) text += "    extern __shared__ __align__(16) unsigned char shared[];\n";
        for (const auto& [name, type, count, offset] : m_arrays) {
            const std::string own = groups() > 1 ? " + " + group() + " * " + std::to_string(count) : "";
            const std::string all = own.empty() ? name : name + "s";  // of all groups
            if (!isDynamic())
                text += "    __shared__ " + type + " " + all + "[" + std::to_string(groups() * count) + "];\n";
            if (isDynamic() || !own.empty())
                text += "    " + type + "* const " + name + " = " +
                        (isDynamic() ? "(" + type + "*)(shared + " + std::to_string(offset) + ")" : all) + own + ";\n";
        }
        return text;
    }

    std::string value(const Expr& e) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return cppLiteral(e);
            case ExprKind::Symbol: return m_sizes.at(e->name);
            case ExprKind::Axis: return x(static_cast<int>(e->integer));
            case ExprKind::Var: return t(static_cast<int>(e->integer));
            case ExprKind::Load: return load(e);
            case ExprKind::Call:
                if (e->name == "ramp")
                    return (e->dtype == DType::I32 ? "((int)" : "(") + addend(e->operands[0]) + " + " + m_lane + ")";
                if (e->name == "active") return "(" + m_lane + " < n)";
                if (e->name == "lane" || e->name.starts_with("lanes_")) return across(e);
                break;
            default: break;
        }
        if (e->kind == ExprKind::Cast && toInteger(*e))
            return helper("to_int", "to_" + cppValueSuffix(e->dtype)) + "(" + value(e->operands[0]) + ")";
        m_checks += mayFault(*e);
        std::vector<Code> in;
        for (const Expr& operand : e->operands) {
            const std::string own = value(operand);
            in.push_back({operand->operands.empty() ? own : "(" + own + ")", false});
        }
        return cppOperation(e, in, false, m_helpers);
    }
    /// Numbers that an integer does not hold become what eager PyTorch makes of them on GPUs, not on CPUs.
    static bool toInteger(const ExprNode& cast) {
        return isFloating(cast.operands[0]->dtype) && !isFloating(cast.dtype) && cast.dtype != DType::Bool;
    }
    static bool mayFault(const ExprNode& e) {
        const bool divides = e.kind == ExprKind::Div || e.kind == ExprKind::FloorDiv || e.kind == ExprKind::Mod;
        return (divides && !isFloating(e.operands[0]->dtype)) ||
               (e.kind == ExprKind::Call && e.name == "checked_index");
    }
    std::string helper(const std::string& needed, const std::string& name) {
        m_helpers.insert(needed);
        return name;
    }
    /// A buffer, which view.dtype may read as another type than the one that was written.
    std::string bufferAs(const Expr& e) const {
        const std::string type = cppMemoryType(e->dtype);
        return type == cppMemoryType(m_nest->memoryOf(e)) ? e->name : "((const " + type + "*)" + e->name + ")";
    }
    std::string load(const Expr& e) {
        const std::string suffix = cppMemorySuffix(e->dtype);
        m_text.noteRead(bufferOf(e));
        const auto element = [&](const std::string& buffer, const std::string& place) {
            if (!isHalf(e->dtype)) return buffer + "[" + place + "]" + (e->dtype == DType::Bool ? " != 0" : "");
            return helper("mem_" + suffix, "rd_" + suffix) + "(" + buffer + " + (" + place + "))";
        };
        for (const Wide& wide : m_wide)
            if (wide.load == e) return "(" + element(wide.array, wide.place) + ")";
        const bool along = e->operands.size() == 2;
        const std::string step = along ? " + " + m_lane + " * (" + value(e->operands[1]) + ")" : "";
        const std::string own = element(bufferAs(e), (along ? addend(e->operands[0]) : value(e->operands[0])) + step);
        const bool spread = along || lanesOf(*m_nest, e->operands[0]) > 1;
        return spread ? "(" + m_lane + " < n ? " + own + " : (" + cppValueType(e->dtype) + ")0)" : "(" + own + ")";
    }

    const LoopNest* m_nest;
    std::unordered_map<std::string, std::string> m_sizes;
    std::set<std::string> m_helpers;
    CodeText m_text;
    struct SharedArray {
        std::string name, type;
        int64_t count, offset;
    };
    std::vector<SharedArray> m_arrays;
    int64_t m_sharedBytes = 0;
    std::map<const Stmt*, std::vector<int>> m_before;  // vectors that are shared before a statement
    std::set<int64_t> m_ofWarps;                       // of which those have an element for each warp
    std::string m_lane = "k";
    /// An element of an array that a thread reads or writes at once.
    struct Wide {
        Expr load;
        std::string array, place;
    };
    std::vector<Wide> m_wide;
    std::map<const Store*, Wide> m_wideStores;
    int m_next = 0, m_checks = 0;  // operations that report faults
};

}  // namespace

PrintedKernel printCuda(const LoweredKernel& kernel) {
    PrintedKernel printed;
    Hasher content;
    for (size_t i = 0; i < kernel.nests.size(); ++i) {
        const LoopNest& nest = kernel.nests[i];
        printed.functions.push_back(kernel.functionOf(i));
        const PrintedFunction function = CudaPrinter(nest).print(printed.functions.back(), printed.helpers);
        content.add(std::string_view(function.text()));
        printed.append(nest.name, function);
    }
    printed.content = content.finish().hex();
    return printed;
}

std::string cudaFile(const std::vector<PrintedKernel>& kernels) {
    std::set<std::string> helpers, defined;  // kernels that do the same have one name
    for (const PrintedKernel& kernel : kernels) helpers.insert(kernel.helpers.begin(), kernel.helpers.end());
    std::string file = "// Generated by Cutaway.\n" + cudaPrelude(helpers);
    for (const PrintedKernel& kernel : kernels)
        if (kernel.functions.empty() || defined.insert(kernel.functions[0]).second) file += "\n" + kernel.source;
    return file;
}

}  // namespace cutaway
