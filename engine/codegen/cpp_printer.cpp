#include "engine/codegen/cpp_printer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "engine/codegen/cpp_expr.h"
#include "engine/codegen/cpp_operation.h"
#include "engine/expr/expr_parse.h"
#include "engine/support/check.h"
#include "engine/support/hash.h"

namespace cutaway {
namespace {

class CppPrinter {
  public:
    explicit CppPrinter(const LoopNest& nest) : m_nest(&nest) {
        CT_CHECK(nest.lanes == 1 || hasVectorsOf(nest.lanes), "the prelude has vectors of that many lanes");
        for (size_t i = 0; i < nest.sizes.size(); ++i) m_sizes.emplace(nest.sizes[i], "n" + std::to_string(i));
    }

    /// The function; what it calls goes to `helpers`.
    PrintedFunction print(const std::string& function, std::set<std::string>& helpers) {
        for (size_t i = 0; i < m_nest->buffers.size(); ++i) {
            const KernelBuffer& buffer = m_nest->buffers[i];
            const std::string type = (buffer.written ? "" : "const ") + cppMemoryType(buffer.dtype) + "*";
            line(type + " __restrict " + bufferName(static_cast<int>(i)) + " = (" + type + ")p[" + std::to_string(i) +
                 "];");
        }
        for (size_t i = 0; i < m_nest->sizes.size(); ++i) {
            const std::string number = std::to_string(i);
            // Of a float the bits.
            if (symbolDType(m_nest->sizes[i]) == DType::F64)
                line("double n" + number + "; __builtin_memcpy(&n" + number + ", s + " + number + ", 8);");
            else line("const long n" + number + " = s[" + number + "];");
        }
        for (size_t i = 0; i < m_nest->scratch.size(); ++i)
            line("alignas(64) " + cppMemoryType(m_nest->scratch[i].dtype) + " " + bufferName(~static_cast<int>(i)) +
                 "[" + std::to_string(m_nest->scratch[i].count) + "];");
        body(m_nest->body);
        helpers.merge(m_helpers);
        return {
            "extern \"C\" void " + function + "(void* const* p, const long* s, long begin, long end, int* fault) {\n",
            std::move(m_text)};
    }

  private:
    void line(const std::string& code) { m_text.line(code); }

    // ---- statements
    void body(const Body& statements) {
        for (const Stmt& stmt : statements) std::visit([&](const auto& own) { on(own); }, stmt.node);
    }
    void inside(const Body& statements) {
        m_text.indent();
        body(statements);
        m_text.unindent();
    }
    static std::string x(int axis) { return "x" + std::to_string(axis); }
    static std::string t(int var) { return "t" + std::to_string(var); }

    void on(const For& loop) {
        const bool parallel = loop.map == Map::Parallel;
        const std::string from = parallel ? within(loop.from, m_nest->range, "begin") : value(loop.from).text;
        const std::string to = parallel ? within(loop.to, m_nest->range, "end") : value(loop.to).text;
        const std::string axis = x(loop.axis);
        if (loop.lanes == 1) {
            line("for (long " + axis + " = " + from + "; " + axis + " < " + to + "; ++" + axis + ") {");
            inside(loop.body);
            return line("}");
        }
        const std::string name = "block" + std::to_string(m_next), at = "at" + std::to_string(m_next++);
        const std::string lanes = std::to_string(loop.lanes), limit = at + "_end";
        line("auto " + name + " = [&](const long " + axis + ", const int n) __attribute__((always_inline)) {");
        inside(loop.body);
        line("};");
        line("long " + at + " = " + from + ";");
        line("const long " + limit + " = " + to + ";");
        line("for (; " + at + " + " + lanes + " <= " + limit + "; " + at + " += " + lanes + ") " + name + "(" + at +
             ", " + lanes + ");");
        const auto first = loop.from.asInt(), last = loop.to.asInt();
        const bool whole = loop.whole || (!parallel && first && last && (*last - *first) % loop.lanes == 0);
        if (!whole) line("if (" + at + " < " + limit + ") " + name + "(" + at + ", int(" + limit + " - " + at + "));");
    }
    /// A bound of a loop over parts, cut to the part [begin, end) that the function is called for.
    std::string within(const Expr& bound, const SymInt& range, const std::string& handed) {
        if (bound.asInt() == 0 || bound == range.expr()) return handed;
        const std::string own = value(bound).text;
        return handed == "begin" ? "(begin > " + own + " ? begin : " + own + ")"
                                 : "(end < " + own + " ? end : " + own + ")";
    }
    void on(const If& branch) {
        line("if (" + value(branch.condition).text + ") {");
        inside(branch.body);
        line("}");
    }
    void on(const Index& index) { line("const long " + x(index.axis) + " = " + value(index.value).text + ";"); }
    void on(const Let& let) { define("const ", let.var, let.value); }
    void on(const Declare& declare) { define("", declare.var, declare.value); }
    void define(const std::string& prefix, int var, const Expr& expr) {
        const NestVar& nestVar = m_nest->vars[static_cast<size_t>(var)];
        const std::string type = nestVar.lanes > 1 ? cppVectorType(nestVar.dtype) : cppValueType(nestVar.dtype);
        line(prefix + type + " " + t(var) + " = " + as(nestVar, expr) + ";");
    }
    void on(const Set& set) {
        line(t(set.var) + " = " + as(m_nest->vars[static_cast<size_t>(set.var)], set.value) + ";");
    }
    std::string as(const NestVar& var, const Expr& expr) {
        const Code code = value(expr);
        return var.lanes > 1 ? widened(code, var.dtype).text : code.text;
    }
    void on(const Barrier&) {}  // one thread runs all lanes
    void on(const Prefetch& prefetch) {
        line("__builtin_prefetch(" + bufferName(prefetch.buffer) + " + " + inner(prefetch.index).text +
             (prefetch.toWrite ? ", 1);" : ");"));
    }
    void on(const Transpose& transpose) {
        m_helpers.insert("turn");
        m_text.noteRead(transpose.from.buffer);
        m_text.noteWrite(transpose.to.buffer);
        const auto side = [&](const Transpose::Side& own) {
            return bufferName(own.buffer) + " + " + value(own.index).text + ", " + value(own.step).text + ", ";
        };
        line("turn(" + side(transpose.from) + side(transpose.to) + value(transpose.rows).text + ", " +
             value(transpose.columns).text + ");");
    }
    template <class S>
    void on(const S&) {
        if constexpr (!std::is_same_v<S, Store>) CT_CHECK(false, "reductions are lowered before nests are printed");
    }
    void on(const Store& store) {
        const DType memory = m_nest->memoryOf(store.buffer);
        const DType type = store.value->dtype;
        CT_CHECK(computeTypeOf(memory) == computeTypeOf(type), "stored values have their buffer's type");
        const std::string buffer = bufferName(store.buffer), suffix = cppMemorySuffix(memory);
        const Code code = value(store.value), at = value(store.index);
        m_text.noteWrite(store.buffer);
        CT_CHECK(store.how != StoreHow::Atomic, "threads of a CPU do not add at once");
        const bool adds = store.how == StoreHow::Adds;
        if (!store.step && !at.vector) {
            if (isHalf(memory))
                line(helper("mem_" + suffix, "wr_" + suffix) + "(" + buffer + " + " + at.text + ", " + code.text +
                     ");");
            else line(buffer + "[" + at.text + (adds ? "] += " : "] = ") + code.text + ";");
            return;
        }
        m_helpers.insert("mem_" + suffix);
        const std::string vector = widened(code, type).text;
        const std::string to = buffer + " + " + at.text + ", ";
        if (adds)
            line(store.step ? "ads_" + suffix + "(" + to + value(store.step).text + ", n, " + vector + ");"
                            : "adg_" + suffix + "(" + buffer + ", " + at.text + ", n, " + vector + ");");
        else if (!store.step) line("stg_" + suffix + "(" + buffer + ", " + at.text + ", n, " + vector + ");");
        else if (store.step.asInt() == 1) line("st_" + suffix + "(" + to + "n, " + vector + ");");
        else line("sts_" + suffix + "(" + to + value(store.step).text + ", n, " + vector + ");");
    }

    // ---- expressions
    std::string helper(const std::string& needed, const std::string& name) {
        m_helpers.insert(needed);
        return name;
    }
    static bool isAtom(const Expr& e) {
        if (e->operands.empty()) return true;
        return e->kind == ExprKind::Call && (e->name == "ramp" || e->name == "active");
    }
    Code value(const Expr& e) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return {cppLiteral(e), false};
            case ExprKind::Symbol: return {m_sizes.at(e->name), false};
            case ExprKind::Axis: return {x(static_cast<int>(e->integer)), false};
            case ExprKind::Var: {
                const int var = static_cast<int>(e->integer);
                return {t(var), m_nest->vars[static_cast<size_t>(var)].lanes > 1};
            }
            case ExprKind::Load: return load(e);
            case ExprKind::Call:
                if (e->name == "ramp")
                    return {"iota_" + cppValueSuffix(e->dtype) + "(" + value(e->operands[0]).text + ")", true};
                if (e->name == "active") return {"lanesBelow(n)", true};
                if (e->name == "lane") return lane(e);
                if (e->name == "lanes_from") {
                    const Code code = value(e->operands[0]);
                    return {"rotated<" + value(e->operands[1]).text + ">(" + code.text + ")", true};
                }
                break;
            default: break;
        }
        return operation(e);
    }
    Code lane(const Expr& e) {
        const std::string own = value(e->operands[0]).text + "[" + value(e->operands[1]).text + "]";
        return {e->dtype == DType::Bool ? "(" + own + " != 0)" : "(" + cppValueType(e->dtype) + ")" + own, false};
    }
    /// An operand of an operation.
    Code inner(const Expr& e) {
        Code code = value(e);
        if (!isAtom(e)) code.text = "(" + code.text + ")";
        return code;
    }
    Code operation(const Expr& e) {
        std::vector<Code> in;
        bool vector = false;
        for (const Expr& operand : e->operands) {
            in.push_back(inner(operand));
            vector |= in.back().vector;
        }
        if (vector && e->kind != ExprKind::Cast && !(e->kind == ExprKind::Call && e->name == "checked_index"))
            for (size_t i = 0; i < in.size(); ++i)
                // A scalar condition chooses between vectors without being spread.
                if (e->kind != ExprKind::Where || i > 0) in[i] = widened(in[i], e->operands[i]->dtype);
        return {cppOperation(e, in, vector, m_helpers), vector};
    }
    /// A read-only buffer, which view.dtype may read as another type than the one that was written.
    std::string bufferAs(const Expr& e) const {
        const std::string type = cppMemoryType(e->dtype);
        const DType dtype = m_nest->memoryOf(e);
        return type == cppMemoryType(dtype) ? e->name : "((const " + type + "*)" + e->name + ")";
    }
    Code load(const Expr& e) {
        const std::string buffer = bufferAs(e), suffix = cppMemorySuffix(e->dtype);
        m_text.noteRead(bufferOf(e));
        const Code at = value(e->operands[0]);
        if (e->operands.size() == 2) {
            m_helpers.insert("mem_" + suffix);
            const std::string from = buffer + " + (" + at.text + ")";
            const auto along = [&](const Expr& step) {
                if (step.asInt() == 1) return "ld_" + suffix + "(" + from + ", n)";
                return "lds_" + suffix + "(" + from + ", " + value(step).text + ", n)";
            };
            const Expr& step = e->operands[1];
            if (step->kind != ExprKind::Where) return {along(step), true};
            return {"(" + inner(step->operands[0]).text + " ? " + along(step->operands[1]) + " : " +
                        along(step->operands[2]) + ")",
                    true};
        }
        if (at.vector) return {helper("mem_" + suffix, "ldg_" + suffix) + "(" + buffer + ", " + at.text + ", n)", true};
        if (isHalf(e->dtype))
            return {helper("mem_" + suffix, "rd_" + suffix) + "(" + buffer + " + (" + at.text + "))", false};
        return {buffer + "[" + at.text + "]" + (e->dtype == DType::Bool ? " != 0" : ""), false};
    }

    const LoopNest* m_nest;
    std::unordered_map<std::string, std::string> m_sizes;
    std::set<std::string> m_helpers;
    CodeText m_text;
    int m_next = 0;
};

}  // namespace

void PrintedKernel::append(const std::string& nest, const PrintedFunction& function) {
    const std::string before = (source.empty() ? "// " : "\n// ") + nest + "\n" + function.head;
    lines.resize(lines.size() + static_cast<size_t>(std::count(before.begin(), before.end(), '\n')));
    lines.insert(lines.end(), function.body.lines().begin(), function.body.lines().end());
    lines.emplace_back();  // the brace
    source += before + function.body.text() + "}\n";
}

PrintedKernel printCpp(const LoweredKernel& kernel) {
    PrintedKernel printed;
    Hasher content;
    for (size_t i = 0; i < kernel.nests.size(); ++i) {
        const LoopNest& nest = kernel.nests[i];
        if (nest.lanes > 1) printed.lanes = nest.lanes;
        printed.functions.push_back(kernel.functionOf(i));
        const PrintedFunction function = CppPrinter(nest).print(printed.functions.back(), printed.helpers);
        content.add(std::string_view(function.text()));
        printed.append(nest.name, function);
    }
    printed.content = content.finish().hex();
    return printed;
}

std::string cppFile(const std::vector<PrintedKernel>& kernels) {
    std::map<int, std::set<std::string>> helpers;  // by number of lanes
    for (const PrintedKernel& kernel : kernels)
        helpers[kernel.lanes].insert(kernel.helpers.begin(), kernel.helpers.end());
    std::string file = "// Generated by Cutaway. Kernels are called through pointers.\n" + std::string(cppVectors());
    std::set<std::string> defined;  // kernels that do the same have one name
    for (const auto& [lanes, own] : helpers) {
        file += "namespace lanes" + std::to_string(lanes) + " {\n" + cppPrelude(lanes, own);
        for (const PrintedKernel& kernel : kernels)
            if (kernel.lanes == lanes && (kernel.functions.empty() || defined.insert(kernel.functions[0]).second))
                file += "\n" + kernel.source;
        file += "}\n#undef W\n";
    }
    return file;
}

}  // namespace cutaway
