#include "engine/codegen/host_printer.h"

#include <set>

#include "engine/codegen/cpp_expr.h"
#include "engine/host/bind_host.h"
#include "engine/libraries/library.h"
#include "engine/ops/op_registry.h"
#include "engine/support/checked.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

/// A literal of C++: anything that is not plain becomes an escape.
std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = byte >= ' ' && byte < 127 && c != '"' && c != '\\' && c != '?';
        if (plain) {
            result += c;
            continue;
        }
        const char digits[] = {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
                               static_cast<char>('0' + byte % 8), 0};
        result += digits;
    }
    return result + "\"";
}
std::string listed(const std::vector<std::string>& items) {
    std::string all;
    for (const std::string& item : items) all += (all.empty() ? "" : ", ") + item;
    return all;
}
std::string integer(int64_t value) {
    if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807L - 1)";
    return std::to_string(value) + (value == static_cast<int32_t>(value) ? "" : "L");
}

/// Sizes are int64_t, conditions among them bool.
class SizePrinter {
  public:
    explicit SizePrinter(const std::vector<std::string>& symbols) : m_symbols(&symbols) {}

    std::string text(const Expr& e) const {
        switch (e->kind) {
            case ExprKind::Int: return integer(e->integer);
            case ExprKind::Bool: return e->integer != 0 ? "true" : "false";
            case ExprKind::Symbol: return symbol(e->name);
            case ExprKind::Add: return joined(e, " + ");
            case ExprKind::Mul: return joined(e, " * ");
            case ExprKind::FloorDiv: return called("floor_div", e);
            case ExprKind::Mod: return called("floor_mod", e);
            case ExprKind::Min: return called("least", e);
            case ExprKind::Max: return called("most", e);
            case ExprKind::Pow: return called("power", e);
            case ExprKind::Eq: return joined(e, " == ");
            case ExprKind::Ne: return joined(e, " != ");
            case ExprKind::Lt: return joined(e, " < ");
            case ExprKind::Le: return joined(e, " <= ");
            default: throw SizeError("the size " + cutaway::text(e) + " has no form in C++");
        }
    }

  private:
    std::string symbol(const std::string& name) const {
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

constexpr const char* kBegin = R"(#include "engine/runtime/exported/interface.h"

namespace {
inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
inline int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
inline int64_t power(int64_t a, int64_t b) {
    int64_t result = 1;
    for (; b > 0; --b) result *= a;
    return result;
}
inline int64_t number_in(const CtTensor& t) {
    switch (t.dtype) {
        case CT_I32: return *static_cast<const int32_t*>(t.data);
        case CT_F64: return static_cast<int64_t>(*static_cast<const double*>(t.data));
        case CT_F32: return static_cast<int64_t>(*static_cast<const float*>(t.data));
        case CT_BOOL: return *static_cast<const uint8_t*>(t.data) != 0;
        default: return *static_cast<const int64_t*>(t.data);
    }
}
constexpr CtArgument none() { return {CT_NONE, 0, 0, nullptr, nullptr}; }
constexpr CtArgument operand(int64_t n) { return {CT_OPERAND, n, 0, nullptr, nullptr}; }
constexpr CtArgument whole(int64_t n) { return {CT_INT, n, 0, nullptr, nullptr}; }
constexpr CtArgument real(double r) { return {CT_REAL, 0, r, nullptr, nullptr}; }
constexpr CtArgument truth(bool b) { return {CT_TRUTH, b, 0, nullptr, nullptr}; }
constexpr CtArgument type(int64_t n) { return {CT_TYPE, n, 0, nullptr, nullptr}; }
constexpr CtArgument words(const char* t) { return {CT_TEXT, 0, 0, t, nullptr}; }
constexpr CtArgument list(int64_t n, const CtArgument* items) { return {CT_LIST, n, 0, nullptr, items}; }
}  // namespace

)";

constexpr const char* kInterface = R"(extern "C" {
const ct::Code* NAME_code(void) { return &kCode; }
CT_EXPORTED const CtProgramInfo* NAME_info(void) { return &kInfo; }
CT_EXPORTED CtProgram* NAME_create(const CtHost* host, const CtTensor* constants) {
    return ct::create(kCode, host, constants);
}
CT_EXPORTED void NAME_close(CtProgram* program) { delete program; }
CT_EXPORTED CtContext* NAME_context(CtProgram* program, const CtParallel* parallel) {
    return ct::contextOf(program, parallel);
}
CT_EXPORTED void NAME_release(CtContext* context) { delete context; }
CT_EXPORTED int32_t NAME_run(CtContext* context, const CtTensor* inputs, CtTensor* outputs) {
    return ct::run(context, inputs, outputs);
}
CT_EXPORTED const char* NAME_context_error(const CtContext* context) { return context->error.c_str(); }
CT_EXPORTED const char* NAME_error(void) { return ct::lastFailure().c_str(); }
}
)";

class HostPrinter {
  public:
    HostPrinter(const HostProgram& program, const HostPrinting& how)
        : m_program(&program), m_how(&how), m_function(&program.functions.at(0)) {
        for (const HostSymbol& symbol : m_function->symbols) m_symbols.push_back(symbol.name);
    }

    Result<std::string> run() {
        CT_TRY_VOID(check());
        m_out = kBegin;
        declareKernels();
        printInfo();
        m_out += "namespace {\nint32_t run(ct::Frame& c, const CtTensor* in, CtTensor* out) {\n";
        line("const CtTensor* const k = c.constants();");
        printSizes();
        printMemory();
        for (size_t i = 0; i < m_function->steps.size(); ++i) printStep(i, m_function->steps[i]);
        printResults();
        m_out += "    return 0;\n}\n}  // namespace\n\n";
        printInterface();
        return std::move(m_out);
    }

  private:
    void line(const std::string& text) { m_out += "    " + text + "\n"; }
    std::string size(const SymInt& value) const {
        return value.isInt() ? integer(value.value()) : SizePrinter(m_symbols).text(value.expr());
    }
    static std::string value(int64_t number) { return "v" + std::to_string(number); }

    Result<void> check() const {
        if (m_function->segments.size() > 1)
            return unsupported("sizes of this program follow from data, which no exported program can do yet");
        for (const HostStep& step : m_function->steps)
            if (step.kind == HostStepKind::Functions)
                return unsupported(step.op + " runs graphs, which no exported program can do yet", step.node,
                                   {"run the graph here"});
            else if (step.kind == HostStepKind::Reference)
                return unsupported(step.op + " is computed by the engine, and no exported program has that", step.node,
                                   {"run the graph here, or write the call with other operators"});
        return {};
    }

    void declareKernels() {
        std::set<std::string> said;
        m_out += "extern \"C\" {\n";
        for (const HostKernel& kernel : m_program->kernels)
            for (const HostKernel::Launch& launch : kernel.launches)
                if (said.insert(launch.function).second)
                    m_out += "void " + launch.function + "(void* const*, const int64_t*, int64_t, int64_t, int*);\n";
        m_out += "}\n\n";
    }

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
        const HostParameter& own = m_function->parameters[parameter];
        if (own.state) {
            size_t number = 0;
            for (size_t i = 0; i < parameter; ++i) number += m_function->parameters[i].state;
            return "c.state(" + std::to_string(number) + ")";
        }
        return own.constant ? given(parameter) + ".data" : "x" + std::to_string(placeOf(parameter));
    }
    void printInfo() {
        std::vector<std::string> constants, inputs, outputs;
        for (const std::string& name : m_program->constants) constants.push_back(port(name, constantType(name), false));
        for (const HostParameter& parameter : m_function->parameters)
            (parameter.isHeld() ? constants : inputs)
                .push_back(port(parameter.name, parameter.type.tensor(), parameter.state));
        for (size_t i = 0; i < m_function->results.size(); ++i) {
            const int64_t number = m_function->results[i];
            const HostValue* const value = number < 0 ? nullptr : &m_function->values[static_cast<size_t>(number)];
            const std::string name = i < m_how->outputs.size() ? m_how->outputs[i] : value ? value->name : "";
            outputs.push_back(port(name, value ? &value->type : nullptr, false, value == nullptr));
        }
        const auto array = [&](const char* name, const std::vector<std::string>& ports) {
            m_out += "const CtPort " + std::string(name) + "[] = {";
            for (const std::string& each : ports) m_out += "\n    " + each + ",";
            m_out += ports.empty() ? "{}};\n" : "\n};\n";
        };
        m_out += "namespace {\n";
        array("kConstants", constants);
        array("kInputs", inputs);
        array("kOutputs", outputs);
        m_out += "const CtProgramInfo kInfo = {CT_PROGRAM_VERSION, sizeof(CtProgramInfo), " +
                 std::to_string(constants.size()) + ", " + std::to_string(inputs.size()) + ", " +
                 std::to_string(outputs.size()) + ", kConstants, kInputs, kOutputs};\n}  // namespace\n\n";
    }
    /// Of the program's own constants, which are no parameters.
    const TensorType* constantType(const std::string& name) const {
        for (const HostValue& value : m_function->values)
            if (value.kind == HostValue::Kind::Constant &&
                m_program->constants[static_cast<size_t>(value.index)] == name)
                return &value.type;
        return nullptr;
    }
    /// `type` null: a number, or a None.
    std::string port(const std::string& name, const TensorType* type, bool state, bool none = false) {
        const std::string begin = "{" + quoted(name) + ", ";
        if (type == nullptr)
            return begin + std::to_string(CT_I64) + ", " + (none ? "-1" : "0") + ", nullptr, nullptr, 0}";
        const auto array = [&](const SymDims& dims) -> std::string {
            std::string all;
            for (const SymInt& dim : dims) all += (all.empty() ? "" : ", ") + integer(dim.isInt() ? dim.value() : -1);
            if (all.empty()) return "nullptr";
            const auto [known, fresh] = m_fixed.emplace(all, "f" + std::to_string(m_fixed.size()));
            if (fresh) m_out += "static const int64_t " + known->second + "[] = {" + all + "};\n";
            return known->second;
        };
        const bool fixed = std::all_of(type->strides.begin(), type->strides.end(),
                                       [](const SymInt& stride) { return stride.isInt(); });
        return begin + std::to_string(static_cast<int>(type->dtype)) + ", " + std::to_string(type->rank()) + ", " +
               array(type->sizes) + ", " + (fixed ? array(type->strides) : "nullptr") + ", " + (state ? "1}" : "0}");
    }

    // ---- sizes
    void printSizes() {
        std::vector<std::string> all;
        for (size_t i = 0; i < m_function->symbols.size(); ++i) {
            printSymbol("n" + std::to_string(i), m_function->symbols[i]);
            all.push_back("n" + std::to_string(i));
        }
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
    void printSymbol(const std::string& name, const HostSymbol& symbol) {
        const std::string from = given(symbol.parameter), where = quoted(m_function->parameters[symbol.parameter].name);
        const auto dim = std::to_string(symbol.dim);
        if (symbol.dim >= 0)
            line("if (" + from + ".rank <= " + dim + ") return c.fail(" + where + ", \"too few dims\");");
        std::string number = symbol.dim < 0 ? "number_in(" + from + ")" : from + ".sizes[" + dim + "]";
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
    void printMemory() {
        std::string total = "0";
        for (size_t i = 0; i < m_function->memory.size(); ++i) {
            line("const int64_t s" + std::to_string(i) + " = " + total + ";");
            total = "s" + std::to_string(i) + " + (" + size(m_function->memory[i].bytes) + " + 63) / 64 * 64";
        }
        line("char* const arena = c.arena.grow(" + total + ");");
        for (size_t i = 0; i < m_function->values.size(); ++i) {
            const HostValue& own = m_function->values[i];
            const int bytes = byteSize(own.type.dtype);
            std::string at;
            switch (own.kind) {
                case HostValue::Kind::Input: at = dataOf(static_cast<size_t>(own.index)); break;
                case HostValue::Kind::Constant: at = "k[" + std::to_string(own.index) + "].data"; break;
                case HostValue::Kind::View:
                    at = value(own.index) + " + (" + size(own.offset) + ") * " + std::to_string(bytes);
                    break;
                default: at = "arena + s" + std::to_string(own.index) + " + " + size(own.offset);
            }
            line("char* const " + value(static_cast<int64_t>(i)) + " = static_cast<char*>(static_cast<void*>(" + at +
                 "));");
        }
    }
    bool isWritten(size_t parameter) const {
        return std::any_of(m_function->values.begin(), m_function->values.end(), [&](const HostValue& value) {
            return value.kind == HostValue::Kind::Input && value.index == static_cast<int64_t>(parameter) &&
                   value.written;
        });
    }
    std::string tensor(int64_t number) {
        if (number < 0) return "{nullptr, 0, -1, nullptr, nullptr}";
        const TensorType& type = m_function->values[static_cast<size_t>(number)].type;
        return "{" + value(number) + ", " + std::to_string(static_cast<int>(type.dtype)) + ", " +
               std::to_string(type.rank()) + ", " + dims(type.sizes) + ", " + dims(type.strides) + "}";
    }

    // ---- steps
    void printStep(size_t number, const HostStep& step) {
        if (step.kind == HostStepKind::Kernel) printKernel(step);
        else printCall(number, step);
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
        // What stores nothing is not run: a kernel without loops would store once.
        std::string any;
        for (const std::string& count : written) any += (any.empty() ? "" : " + ") + count;
        line("if (" + (any.empty() ? std::string("false") : any + " > 0") + ") {");
        line("    void* const b[] = {" + listed(buffers) + "};");
        line("    const int64_t n[] = {" + listed(sizes) + "};");
        const int64_t time = std::max(step.flops / kKernelOperationsPerNanosecond, step.bytes / kBytesPerNanosecond);
        for (const HostKernel::Launch& launch : kernel.launches)
            line("    if (const int f = c.launch(" + launch.function + ", b, n, " + size(launch.range) + ", " +
                 integer(time) + ")) return c.failed(f, " + quoted(step.checking.empty() ? step.node : step.checking) +
                 ");");
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
        for (const int64_t each : step.results) results.push_back(tensor(each));
        line("{");
        m_lists = 0;
        std::vector<std::string> args;
        for (const Argument& arg : step.args) args.push_back(argument(arg));
        const auto array = [&](const char* type, const char* name, std::vector<std::string> items) {
            if (items.empty()) items.push_back("{}");
            line(std::string("    const ") + type + " " + name + "[] = {" + listed(items) + "};");
        };
        std::vector<std::string> params;
        for (const Param& param : requireOp(step.op).schema()->params) params.push_back(quoted(param.name));
        if (params.empty()) params.push_back("nullptr");
        line("    static const char* const p[] = {" + listed(params) + "};");
        array("CtArgument", "a", args);
        array("CtTensor", "x", operands);
        array("uint8_t", "k", constant);
        array("CtTensor", "r", results);
        line("    const CtCall call = {" + quoted(step.op) + ", p, a, " + std::to_string(args.size()) + ", " +
             std::to_string(operands.size()) + ", " + std::to_string(results.size()) + ", x, k, r};");
        const int64_t time = std::max(step.flops / kLibraryOperationsPerNanosecond, step.bytes / kBytesPerNanosecond);
        line("    if (c.call(" + std::to_string(number) + ", " + quoted(step.node) + ", " + quoted(step.library) +
             ", call, " + integer(time) + ")) return 1;");
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
        line("c.dims.resize(" + std::to_string(2 * count) + ");");
        for (size_t i = 0; i < count; ++i) {
            const int64_t number = m_function->results[i];
            const std::string at = std::to_string(i), sizes = "c.dims[" + std::to_string(2 * i) + "]",
                              strides = "c.dims[" + std::to_string(2 * i + 1) + "]";
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
            line(sizes + " = " + all(type.sizes) + ";");
            line(strides + " = " + all(type.strides) + ";");
            line("out[" + at + "] = {" + value(number) + ", " + std::to_string(static_cast<int>(type.dtype)) + ", " +
                 std::to_string(type.rank()) + ", " + sizes + ".data(), " + strides + ".data()};");
        }
    }

    void printInterface() {
        m_out += "namespace {\nconst ct::Code kCode = {&kInfo, {" + std::to_string(m_function->steps.size()) +
                 "}, run};\n}  // namespace\n";
        std::string functions = kInterface;
        for (size_t at = 0; (at = functions.find("NAME", at)) != std::string::npos;)
            functions.replace(at, 4, m_how->name);
        m_out += functions;
    }

    const HostProgram* m_program;
    const HostPrinting* m_how;
    const HostFunction* m_function;
    std::vector<std::string> m_symbols;
    std::map<std::string, std::string> m_dims, m_fixed;  // arrays by their contents: of a run, and of all runs
    std::vector<int64_t> m_operands;                     // of the call that is printed
    int m_lists = 0;
    std::string m_out;
};

}  // namespace

Result<std::string> printHost(const HostProgram& program, const HostPrinting& how) {
    return withCheckedSizes("the host program", {}, [&] { return HostPrinter(program, how).run(); });
}

}  // namespace cutaway
