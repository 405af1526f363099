#include "engine/codegen/host_function_printer.h"

#include <set>

#include "engine/codegen/cpp_expr.h"
#include "engine/codegen/host_words.h"
#include "engine/expr/expr_parse.h"
#include "engine/host/bind_host.h"
#include "engine/interpret/higher_order.h"
#include "engine/libraries/library.h"
#include "engine/support/checked.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using namespace host_words;

/// Sizes are int64_t, conditions among them bool.
class SizePrinter {
  public:
    explicit SizePrinter(const std::vector<std::string>& symbols) : m_symbols(&symbols) {}

    std::string text(const Expr& e) const {
        switch (e->kind) {
            case ExprKind::Int: return integer(e->integer);
            case ExprKind::Bool: return e->integer != 0 ? "true" : "false";
            case ExprKind::Symbol: return symbol(e->name);
            case ExprKind::Add: return called("plus", e);
            case ExprKind::Mul: return called("times", e);
            case ExprKind::FloorDiv: return called("floor_div", e);
            case ExprKind::Mod: return called("floor_mod", e);
            case ExprKind::Min: return called("least", e);
            case ExprKind::Max: return called("most", e);
            case ExprKind::Pow: return called("power", e);
            case ExprKind::Eq: return joined(e, " == ");
            case ExprKind::Ne: return joined(e, " != ");
            case ExprKind::Lt: return joined(e, " < ");
            case ExprKind::Le: return joined(e, " <= ");
            case ExprKind::Gt: return joined(e, " > ");
            case ExprKind::Ge: return joined(e, " >= ");
            case ExprKind::And: return joined(e, " && ");
            case ExprKind::Or: return joined(e, " || ");
            case ExprKind::Not: return "(!" + text(e->operands[0]) + ")";
            case ExprKind::Where:
                return "(" + text(e->operands[0]) + " ? " + text(e->operands[1]) + " : " + text(e->operands[2]) + ")";
            default: throw SizeError("the size " + cutaway::text(e) + " has no form in C++");
        }
    }

  private:
    std::string symbol(const std::string& name) const {
        if (symbolDType(name) == DType::F64) throw SizeError("the number " + name + ", a float, has no form in C++");
        const auto found = std::find(m_symbols->begin(), m_symbols->end(), name);
        if (found == m_symbols->end()) throw SizeError("the size " + name + " does not follow from the inputs");
        return "n" + std::to_string(found - m_symbols->begin());
    }
    std::string joined(const Expr& e, const char* sign) const {
        std::string all;
        for (const Expr& operand : e->operands) all += (all.empty() ? "" : sign) + text(operand);
        return "(" + all + ")";
    }
    std::string called(const char* function, const Expr& e) const {
        std::string all = text(e->operands[0]);
        for (size_t i = 1; i < e->operands.size(); ++i)
            all = std::string(function) + "(" + all + ", " + text(e->operands[i]) + ")";
        return all;
    }

    const std::vector<std::string>* m_symbols;
};

class FunctionPrinter {
  public:
    FunctionPrinter(const HostProgram& program, size_t function)
        : m_program(&program), m_function(&program.functions.at(function)), m_declared(m_function->values.size()) {}

    std::string run(const std::string& name) {
        m_out = "int32_t " + name + "(ct::Frame& c, const CtTensor* in, CtTensor* out) {\n";
        line("const CtTensor* const k = c.constants();");
        for (const HostSymbol& symbol : m_function->symbols) m_symbols.push_back(symbol.name);
        printSizes();
        for (size_t segment = 0; segment < m_function->segments.size(); ++segment) {
            enter(segment);
            const auto [first, end] = m_function->stepsOf(segment);
            for (size_t i = first; i < end; ++i) printStep(i, m_function->steps[i]);
        }
        printResults();
        return std::move(m_out) + "    return 0;\n}\n";
    }

  private:
    void line(const std::string& text) { m_out += "    " + text + "\n"; }
    std::string size(const SymInt& value) const {
        return value.isInt() ? integer(value.value()) : SizePrinter(m_symbols).text(value.expr());
    }
    static std::string value(int64_t number) { return "v" + std::to_string(number); }

    // ---- what the program is given
    /// A parameter's place among those of its kind: inputs, or constants, of which the program's own come first.
    size_t placeOf(size_t parameter) const {
        const bool own = m_function->parameters[parameter].isHeld();
        size_t place = own ? m_program->constants.size() : 0;
        for (size_t i = 0; i < parameter; ++i) place += m_function->parameters[i].isHeld() == own;
        return place;
    }
    std::string given(size_t parameter) const {
        return (m_function->parameters[parameter].isHeld() ? "k[" : "in[") + std::to_string(placeOf(parameter)) + "]";
    }
    /// Where a parameter's elements lie.
    std::string dataOf(size_t parameter) const {
        const HostParameter& hostParameter = m_function->parameters[parameter];
        if (hostParameter.state) {
            size_t number = 0;
            for (size_t i = 0; i < parameter; ++i) number += m_function->parameters[i].state;
            return "c.state(" + std::to_string(number) + ")";
        }
        return hostParameter.constant ? given(parameter) + ".data" : "x" + std::to_string(placeOf(parameter));
    }
    // ---- sizes
    void printSizes() {
        std::vector<std::string> all;
        for (size_t i = 0; i < m_function->symbols.size(); ++i) {
            printSymbol("n" + std::to_string(i), m_function->symbols[i]);
            all.push_back("n" + std::to_string(i));
        }
        printGuards({});
        line("c.begin({" + listed(all) + "});");
        for (size_t i = 0; i < m_function->parameters.size(); ++i) {
            const HostParameter& parameter = m_function->parameters[i];
            const TensorType* type = parameter.type.tensor();
            if (type == nullptr || parameter.isHeld()) continue;
            const std::string place = std::to_string(placeOf(i)), own = "x" + place;
            line("char* const " + own + " = c.given(" + quoted(parameter.name) + ", " + given(i) + ", {nullptr, " +
                 std::to_string(static_cast<int>(type->dtype)) + ", " + std::to_string(type->rank()) + ", " +
                 dims(type->sizes) + ", " + dims(type->strides) + "}, " + (isWritten(i) ? "true" : "false") + ", " +
                 place + ");");
            line("if (" + own + " == nullptr && " + size(numel(type->sizes)) + " > 0) return 1;");
        }
    }
    /// Prints the guards whose symbols are all known by now, without those that were complete with `before`.
    void printGuards(const std::vector<std::string>& before) {
        const auto complete = [&](const std::vector<std::string>& symbols, const SizeGuard& guard) {
            const std::vector<std::string> own = symbolsOf(guard.condition);
            return std::all_of(own.begin(), own.end(), [&](const std::string& symbol) {
                return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
            });
        };
        for (const SizeGuard& guard : m_function->guards) {
            if (!complete(m_symbols, guard) || (!before.empty() && complete(before, guard))) continue;
            line("if (!(" + SizePrinter(m_symbols).text(guard.condition) + ")) return c.fail(" + quoted(guard.node) +
                 ", " + quoted("the graph wants " + cutaway::text(guard.condition) + ", for " + guard.op) + ");");
        }
    }
    void printSymbol(const std::string& name, const HostSymbol& symbol) {
        const std::string from = given(symbol.parameter), where = quoted(m_function->parameters[symbol.parameter].name);
        const auto dim = std::to_string(symbol.dim);
        if (symbol.dim >= 0)
            line("if (" + from + ".rank <= " + dim + ") return c.fail(" + where + ", \"too few dims\");");
        std::string number = symbol.dim < 0 ? "ct::numberIn(" + from + ")" : from + ".sizes[" + dim + "]";
        if (symbol.offset != 0) number = "(" + number + " - " + integer(symbol.offset) + ")";
        if (symbol.scale != 1) number += " / " + integer(symbol.scale);
        line("const int64_t " + name + " = " + number + ";  // " + "size of input " + std::to_string(symbol.parameter));
        std::string outside = name + " < " + integer(symbol.least);
        if (symbol.most) outside += " || " + name + " > " + integer(*symbol.most);
        line("if (" + outside + ") return c.fail(" + where + ", \"the size is outside the range of the program\");");
    }
    /// The name of an array of these numbers.
    std::string dims(const SymDims& sizes) {
        if (sizes.empty()) return "nullptr";
        std::vector<std::string> numbers;
        for (const SymInt& each : sizes) numbers.push_back(size(each));
        const std::string all = listed(numbers);
        const auto [known, fresh] = m_dims.emplace(all, "d" + std::to_string(m_dims.size()));
        if (fresh) line("const int64_t " + known->second + "[] = {" + all + "};");
        return known->second;
    }

    // ---- memory
    bool isKnown(const SymInt& size) const {
        if (size.isInt()) return true;
        const std::vector<std::string> symbols = symbolsOf(size.expr());
        return std::all_of(symbols.begin(), symbols.end(), [this](const std::string& symbol) {
            return std::find(m_symbols.begin(), m_symbols.end(), symbol) != m_symbols.end();
        });
    }
    /// Whether it may be negative: neither a number nor a size that an input has.
    bool isChecked(const SymInt& size) const {
        if (size.isInt()) return false;
        return std::none_of(m_function->symbols.begin(), m_function->symbols.end(), [&](const HostSymbol& symbol) {
            return symbol.least >= 0 && size.expr()->kind == ExprKind::Symbol && size.expr()->name == symbol.name;
        });
    }
    /// Prints checks against negative sizes, for values whose sizes have become known.
    void checkSizes() {
        for (const HostValue& value : m_function->values) {
            const SymDims& sizes = value.type.sizes;
            if (!std::all_of(sizes.begin(), sizes.end(), [this](const SymInt& each) { return isKnown(each); }))
                continue;
            std::vector<std::string> checked;
            for (const SymInt& each : sizes)
                if (isChecked(each) && m_checked.insert(size(each)).second) checked.push_back(size(each));
            if (!checked.empty()) line("if (!c.fits(" + quoted(value.name) + ", {" + listed(checked) + "})) return 1;");
        }
    }
    /// Memory of the values that the segment's steps make.
    void enter(size_t segment) {
        checkSizes();
        std::string total = "0";
        bool any = false;
        for (size_t i = 0; i < m_function->memory.size(); ++i) {
            if (m_function->memory[i].segment != segment) continue;
            any = true;
            line("const int64_t s" + std::to_string(i) + " = " + total + ";");
            total = "plus(s" + std::to_string(i) + ", lines(" + size(m_function->memory[i].bytes) + "))";
        }
        if (any)
            line("char* const arena" + std::to_string(segment) + " = c.arena(" + std::to_string(segment) + ", " +
                 total + ");");
        m_segment = segment;
        declareValues();
    }
    /// Declares all values that are not declared yet and whose place is known by now.
    void declareValues() {
        for (size_t i = 0; i < m_function->values.size(); ++i) {
            const HostValue& hostValue = m_function->values[i];
            if (m_declared[i] || !isKnown(hostValue.offset)) continue;
            const auto index = static_cast<size_t>(hostValue.index);
            switch (hostValue.kind) {
                case HostValue::Kind::Input: declare(i, dataOf(index)); break;
                case HostValue::Kind::Constant: declare(i, "k[" + std::to_string(hostValue.index) + "].data"); break;
                case HostValue::Kind::StepOwned: break;  // its step declares it
                case HostValue::Kind::View:
                    if (m_declared[index])
                        declare(i, value(hostValue.index) + " + (" + size(hostValue.offset) + ") * " +
                                       std::to_string(byteSize(hostValue.type.dtype)));
                    break;
                case HostValue::Kind::Slot: {
                    const size_t segment = m_function->memory[index].segment;
                    if (segment <= m_segment)
                        declare(i, "arena" + std::to_string(segment) + " + s" + std::to_string(hostValue.index) +
                                       " + " + size(hostValue.offset));
                    break;
                }
            }
        }
    }
    void declare(size_t number, const std::string& at) {
        line("char* const " + value(static_cast<int64_t>(number)) + " = static_cast<char*>(static_cast<void*>(" + at +
             "));");
        m_declared[number] = true;
    }
    bool isWritten(size_t parameter) const {
        return std::any_of(m_function->values.begin(), m_function->values.end(), [&](const HostValue& value) {
            return value.kind == HostValue::Kind::Input && value.index == static_cast<int64_t>(parameter) &&
                   value.written;
        });
    }
    /// `at`: where it lies, if not where its value is declared.
    std::string tensor(int64_t number, const std::string& at = {}) {
        if (number < 0) return "{nullptr, 0, -1, nullptr, nullptr}";
        const TensorType& type = m_function->values[static_cast<size_t>(number)].type;
        return "{" + (at.empty() ? value(number) : at) + ", " + std::to_string(static_cast<int>(type.dtype)) + ", " +
               std::to_string(type.rank()) + ", " + dims(type.sizes) + ", " + dims(type.strides) + "}";
    }

    // ---- steps
    void printStep(size_t number, const HostStep& step) {
        switch (step.kind) {
            case HostStepKind::Kernel: return printKernel(step);
            case HostStepKind::Library: return printCall(number, step);
            case HostStepKind::Functions: printGraphs(number, step); break;
            case HostStepKind::Reference: printFinding(number, step); break;
        }
        checkSizes();
        for (size_t r = 0; r < step.results.size(); ++r)
            if (step.results[r] >= 0) declare(static_cast<size_t>(step.results[r]), made(number, r));
        declareValues();
    }
    static std::string made(size_t step, size_t result) {
        return "c.made(" + std::to_string(step) + ", " + std::to_string(result) + ")";
    }
    /// Sizes that follow from what a step has found are numbers from here on.
    void printFound(size_t number, const HostStep& step) {
        const std::vector<std::string> before = m_symbols;
        for (const HostStep::BoundSize& found : step.found) {
            const std::string name = "n" + std::to_string(m_symbols.size());
            const std::string from = found.value ? size(SymInt(found.value))
                                     : found.dim < 0
                                         ? "ct::numberIn(" + tensor(step.operands.at(0)) + ")"
                                         : "c.foundSize(" + std::to_string(number) + ", " +
                                               std::to_string(found.result) + ", " + std::to_string(found.dim) + ")";
            line("const int64_t " + name + " = " + from + ";");
            line("c.found(" + name + ", " + std::to_string(number) + ");");
            m_symbols.push_back(found.symbol);
        }
        if (!step.found.empty()) printGuards(before);
    }
    void printFinding(size_t number, const HostStep& step) {
        if (!step.type.sym()) printCall(number, step);
        printFound(number, step);
        // What is found is row-major in memory; the graph may want other strides.
        for (size_t r = 0; r < step.results.size(); ++r) {
            if (step.results[r] < 0) continue;
            const TensorType& type = m_function->values[static_cast<size_t>(step.results[r])].type;
            if (type.strides != TensorType::contiguous(type.dtype, type.sizes).strides)
                line("c.restride(" + std::to_string(number) + ", " + std::to_string(r) + ", " +
                     std::to_string(static_cast<int>(type.dtype)) + ", " + dims(type.strides) + ");");
        }
    }
    void printGraphs(size_t number, const HostStep& step) {
        constexpr std::pair<std::string_view, const char*> kKinds[] = {{"cond", "Cond"},
                                                                       {"while_loop", "WhileLoop"},
                                                                       {"map", "Map"},
                                                                       {"scan", "Scan"},
                                                                       {"associative_scan", "AssociativeScan"},
                                                                       {"run", "Run"}};
        std::string kind;
        for (const auto& [name, wanted] : kKinds)
            if (name == graphKindOf(step.op)) kind = wanted;
        if (kind.empty())
            throw SizeError(step.node + ": " + step.op + " gives as many rows as it has steps, which is not printed");
        std::vector<std::string> functions, operands, results;
        const bool once = graphKindOf(step.op) == "run";
        for (size_t i = 0; i < step.args.size(); ++i) {
            const Argument& arg = step.args[i];
            if (const auto* body = arg.get<SubgraphRef>()) {
                functions.push_back(std::to_string(functionNamed(body->name)));
                continue;
            }
            // No operands: what a wrapper sets, before its graph, and the identifier of invoke_subgraph, behind it.
            const bool isName = arg.get<std::string>() || (arg.isNone() && i == 1);
            if (once && (functions.empty() || isName)) continue;
            std::vector<std::string> tensors;
            flatten(arg, step, tensors);
            operands.push_back("{" + listed(tensors) + "}");
        }
        for (const int64_t each : step.results) results.push_back(each < 0 ? tensor(-1) : tensor(each, "nullptr"));
        line("if (c.graphs(ct::Graphs::" + kind + ", " + std::to_string(number) + ", " + quoted(step.node) + ", {" +
             listed(functions) + "}, {" + listed(operands) + "}, {" + listed(results) + "})) return 1;");
    }
    size_t functionNamed(const std::string& name) const {
        for (size_t i = 0; i < m_program->functions.size(); ++i)
            if (m_program->functions[i].name == name) return i;
        throw SizeError("the program has no function " + name);
    }
    /// Tensors of an operand; numbers are tensors without dims.
    void flatten(const Argument& arg, const HostStep& step, std::vector<std::string>& out) {
        const auto number = [&](const std::string& type, const std::string& text, int dtype) {
            const std::string name = "q" + std::to_string(m_numbers++);
            line(type + " " + name + " = " + text + ";");
            out.push_back("{&" + name + ", " + std::to_string(dtype) + ", 0, nullptr, nullptr}");
        };
        if (const Node* node = arg.node()) out.push_back(tensor(m_function->numberOf(*node)));
        else if (const auto* items = arg.list())
            for (const Argument& item : *items) flatten(item, step, out);
        else if (arg.isNone()) out.push_back(tensor(-1));
        else if (const bool* truth = arg.get<bool>()) number("uint8_t", *truth ? "1" : "0", CT_BOOL);
        else if (const int64_t* whole = arg.get<int64_t>()) number("int64_t", integer(*whole), CT_I64);
        else if (const Expr* expr = arg.get<Expr>()) number("int64_t", SizePrinter(m_symbols).text(*expr), CT_I64);
        else if (const double* real = arg.get<double>())
            number("double", cppLiteral(Expr::real(*real, DType::F64)), CT_F64);
        else throw SizeError("an operand of " + step.node + " is neither a tensor nor a number");
    }
    void printKernel(const HostStep& step) {
        const HostKernel& kernel = m_program->kernels[step.kernel];
        std::vector<std::string> buffers, sizes, written;
        for (const int64_t buffer : step.buffers) buffers.push_back(value(buffer));
        for (const std::string& symbol : kernel.sizes) sizes.push_back(size(SymInt(Expr::symbol(symbol))));
        if (sizes.empty()) sizes.push_back("0");
        for (size_t b = 0; b < kernel.written.size(); ++b) {
            const SymInt count = numel(m_function->values[static_cast<size_t>(step.buffers[b])].type.sizes);
            if (kernel.written[b]) written.push_back(size(count));
        }
        // Skipped at run time where all results are empty: a kernel without loops would store once all the same.
        std::string any;
        for (const std::string& count : written) any += (any.empty() ? "" : " + ") + count;
        line("if (" + (any.empty() ? std::string("false") : any + " > 0") + ") {");
        line("    void* const b[] = {" + listed(buffers) + "};");
        line("    const int64_t n[] = {" + listed(sizes) + "};");
        const int64_t time = std::max(step.flops / kKernelOperationsPerNanosecond, step.bytes / kBytesPerNanosecond);
        for (const HostKernel::Launch& launch : kernel.launches)
            line("    if (const int f = c.launch(" + launch.function + ", b, n, " + size(launch.range) + ", " +
                 std::to_string(launch.unit) + ", " + integer(time) + ")) return c.failed(f, " +
                 quoted(step.checking.empty() ? step.node : step.checking) + ");");
        line("}");
    }
    void printCall(size_t number, const HostStep& step) {
        m_operands.clear();
        for (const Argument& arg : step.args) collect(arg);
        std::vector<std::string> operands, constant, results;
        for (const int64_t each : m_operands) {
            operands.push_back(tensor(each));
            constant.push_back(m_function->values[static_cast<size_t>(each)].constant ? "1" : "0");
        }
        const bool finds = step.kind == HostStepKind::Reference;
        for (const int64_t each : step.results) {
            const TensorType* type = each < 0 ? nullptr : &m_function->values[static_cast<size_t>(each)].type;
            results.push_back(finds && type ? "{nullptr, " + std::to_string(static_cast<int>(type->dtype)) + ", " +
                                                  std::to_string(type->rank()) + ", nullptr, nullptr}"
                                            : tensor(each));
        }
        line("{");
        m_lists = 0;
        std::vector<std::string> args;
        for (const Argument& arg : step.args) args.push_back(argument(arg));
        const auto array = [&](const char* type, const char* name, std::vector<std::string> items) {
            if (items.empty()) items.push_back("{}");
            line(std::string("    const ") + type + " " + name + "[] = {" + listed(items) + "};");
        };
        std::vector<std::string> params;
        for (const std::string& param : step.params) params.push_back(quoted(param));
        if (params.empty()) params.push_back("nullptr");
        line("    static const char* const p[] = {" + listed(params) + "};");
        array("CtArgument", "a", args);
        array("CtTensor", "x", operands);
        array("uint8_t", "k", constant);
        array("CtTensor", "r", results);
        line("    const CtCall call = {" + quoted(step.op) + ", p, a, " + std::to_string(args.size()) + ", " +
             std::to_string(operands.size()) + ", " + std::to_string(results.size()) + ", x, k, r};");
        const int64_t time = std::max(step.flops / kLibraryOperationsPerNanosecond, step.bytes / kBytesPerNanosecond);
        const std::string which = std::to_string(number) + ", " + quoted(step.node) + ", " + quoted(step.library);
        line(finds ? "    if (c.find(" + which + ", call)) return 1;"
                   : "    if (c.call(" + which + ", call, " + integer(time) + ")) return 1;");
        line("}");
    }
    void collect(const Argument& arg) {
        if (const Node* node = arg.node()) {
            const int64_t number = m_function->numberOf(*node);
            if (std::find(m_operands.begin(), m_operands.end(), number) == m_operands.end())
                m_operands.push_back(number);
        } else if (const auto* items = arg.list()) {
            for (const Argument& item : *items) collect(item);
        }
    }
    std::string argument(const Argument& arg) {
        if (const Node* node = arg.node()) {
            const auto at = std::find(m_operands.begin(), m_operands.end(), m_function->numberOf(*node));
            return "operand(" + std::to_string(at - m_operands.begin()) + ")";
        }
        if (const bool* truth = arg.get<bool>()) return *truth ? "truth(true)" : "truth(false)";
        if (const int64_t* whole = arg.get<int64_t>()) return "whole(" + integer(*whole) + ")";
        if (const Expr* expr = arg.get<Expr>()) return "whole(" + SizePrinter(m_symbols).text(*expr) + ")";
        if (const DType* dtype = arg.get<DType>()) return "type(" + std::to_string(static_cast<int>(*dtype)) + ")";
        if (const double* real = arg.get<double>()) return "real(" + cppLiteral(Expr::real(*real, DType::F64)) + ")";
        if (const auto* text = arg.get<std::string>()) return "words(" + quoted(*text) + ")";
        if (const auto* items = arg.list()) {
            std::vector<std::string> all;
            for (const Argument& item : *items) all.push_back(argument(item));
            if (all.empty()) return "list(0, nullptr)";
            const std::string name = "l" + std::to_string(m_lists++);
            line("    const CtArgument " + name + "[] = {" + listed(all) + "};");
            return "list(" + std::to_string(all.size()) + ", " + name + ")";
        }
        return "none()";
    }

    void printResults() {
        const size_t count = m_function->results.size();
        for (size_t i = 0; i < count; ++i) {
            const int64_t number = m_function->results[i];
            const std::string at = std::to_string(i);
            if (number < 0) {
                line("out[" + at + "] = {nullptr, 0, -1, nullptr, nullptr};");
                continue;
            }
            const TensorType& type = m_function->values[static_cast<size_t>(number)].type;
            const auto all = [&](const SymDims& wanted) {
                std::vector<std::string> numbers;
                for (const SymInt& each : wanted) numbers.push_back(size(each));
                return "{" + listed(numbers) + "}";
            };
            line("out[" + at + "] = c.result(" + at + ", " + value(number) + ", " +
                 std::to_string(static_cast<int>(type.dtype)) + ", " + all(type.sizes) + ", " + all(type.strides) +
                 ");");
        }
    }

    const HostProgram* m_program;
    const HostFunction* m_function;
    std::vector<std::string> m_symbols;         // known so far: "n0", "n1", ...
    std::map<std::string, std::string> m_dims;  // arrays by their contents
    std::set<std::string> m_checked;            // sizes that may be negative
    std::vector<bool> m_declared;               // values
    size_t m_segment = 0;
    std::vector<int64_t> m_operands;  // of the call that is printed
    int m_lists = 0, m_numbers = 0;
    std::string m_out;
};

}  // namespace

std::string printFunction(const HostProgram& program, size_t function, const std::string& name) {
    return FunctionPrinter(program, function).run(name);
}

}  // namespace cutaway
