#include "engine/codegen/host_printer.h"

#include <map>
#include <set>

#include "engine/codegen/host_function_printer.h"
#include "engine/codegen/host_words.h"
#include "engine/expr/expr_parse.h"
#include "engine/libraries/library.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

using namespace host_words;

constexpr const char* kBegin = R"(#include "engine/runtime/exported/interface.h"

namespace {
inline void check(bool overflows) {
    if (overflows) ct::failSize();
}
inline int64_t plus(int64_t a, int64_t b) {
    check(__builtin_add_overflow(a, b, &a));
    return a;
}
inline int64_t times(int64_t a, int64_t b) {
    check(__builtin_mul_overflow(a, b, &a));
    return a;
}
inline int64_t floor_div(int64_t a, int64_t b) {
    check(b == 0 || (b == -1 && a == INT64_MIN));
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
inline int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
inline int64_t power(int64_t a, int64_t b) {
    int64_t result = 1;
    for (; b > 0; --b) result = times(result, a);
    return result;
}
/// Whole lines of memory.
inline int64_t lines(int64_t bytes) { return plus(bytes, 63) / 64 * 64; }
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
CT_EXPORTED void NAME_close(CtProgram* program) { ct::close(program); }
CT_EXPORTED CtContext* NAME_context(CtProgram* program, const CtParallel* parallel) {
    return ct::contextOf(program, parallel);
}
CT_EXPORTED void NAME_release(CtContext* context) { ct::release(context); }
CT_EXPORTED int32_t NAME_run(CtContext* context, const CtTensor* inputs, CtTensor* outputs) {
    return ct::run(context, inputs, outputs);
}
CT_EXPORTED const char* NAME_context_error(const CtContext* context) { return ct::contextError(context); }
CT_EXPORTED const char* NAME_error(void) { return ct::lastError(); }
}
)";

class HostPrinter {
  public:
    HostPrinter(const HostProgram& program, const HostPrinting& how)
        : m_program(&program), m_how(&how), m_function(&program.functions.at(0)) {}

    Result<std::string> run() {
        for (const HostFunction& function : m_program->functions) CT_TRY_VOID(check(function));
        m_out = kBegin;
        declareKernels();
        printInfo();
        m_out += "namespace {\n";
        for (size_t i = 0; i < m_program->functions.size(); ++i)
            m_out += printFunction(*m_program, i, functionName(i)) + "\n";
        m_out += "}  // namespace\n\n";
        printInterface();
        return std::move(m_out);
    }

  private:
    static std::string functionName(size_t number) { return "run" + std::to_string(number); }

    Result<void> check(const HostFunction& function) const {
        for (const HostParameter& parameter : function.parameters)
            if (parameter.saved >= 0)
                return unsupported("a program with a backward has no C interface", function.name,
                                   {"compile it for inference"});
        if (!function.returnedNumbers.empty())
            return unsupported("the graph returns a number, and exported programs return tensors", function.name,
                               {"return tensors only"});
        for (const HostStep& step : function.steps)
            for (const HostStep::BoundSize& found : step.found)
                if (symbolDType(found.symbol) == DType::F64)
                    return unsupported("the graph reads a float from its data, which is not printed", step.node,
                                       {"keep it a tensor"});
        for (const HostStep& step : function.steps)
            if (const PluginLibrary* plugin = pluginOf(*m_program, step.library))
                return unsupported(step.op + " is computed by " + plugin->title + ", which no exported program carries",
                                   step.node,
                                   {"export without the plugin, or with --disable library." + plugin->name +
                                    ": then Cutaway's own libraries and kernels compute the call"});
        for (const HostStep& step : function.steps)
            if (step.kind == HostStepKind::Reference && step.library.empty() && !step.type.sym())
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
    /// The type of one of the program's own constants, which are not parameters; null if no function reads it.
    const TensorType* constantType(const std::string& name) const {
        for (const HostFunction& function : m_program->functions)
            for (const HostValue& value : function.values)
                if (value.kind == HostValue::Kind::Constant &&
                    m_program->constants[static_cast<size_t>(value.index)] == name)
                    return &value.type;
        return nullptr;
    }
    /// `type` null: a number, or a None.
    std::string port(const std::string& name, const TensorType* type, bool state, bool none = false) {
        const std::string begin = "{" + quoted(name) + ", ";
        if (type == nullptr)
            return begin + std::to_string(CT_I64) + ", " + (none ? "-1" : "0") + ", nullptr, nullptr, 0, nullptr}";
        const auto array = [&](const SymDims& dims) -> std::string {
            std::string all;
            for (const SymInt& dim : dims) all += (all.empty() ? "" : ", ") + integer(dim.isInt() ? dim.value() : -1);
            if (all.empty()) return "nullptr";
            const auto [known, fresh] = m_fixed.emplace(all, "f" + std::to_string(m_fixed.size()));
            if (fresh) m_out += "static const int64_t " + known->second + "[] = {" + all + "};\n";
            return known->second;
        };
        const auto original = m_how->originals.find(name);
        const bool fixed = std::all_of(type->strides.begin(), type->strides.end(),
                                       [](const SymInt& stride) { return stride.isInt(); });
        return begin + std::to_string(static_cast<int>(type->dtype)) + ", " + std::to_string(type->rank()) + ", " +
               array(type->sizes) + ", " + (fixed ? array(type->strides) : "nullptr") + ", " + (state ? "1, " : "0, ") +
               (original == m_how->originals.end() ? "nullptr}" : quoted(original->second) + "}");
    }

    void printInterface() {
        std::vector<std::string> all;
        for (size_t i = 0; i < m_program->functions.size(); ++i)
            all.push_back("{" + std::to_string(m_program->functions[i].steps.size()) + ", " +
                          std::to_string(m_program->functions[i].results.size()) + ", " + functionName(i) + "}");
        m_out += "namespace {\nconst ct::Function kFunctions[] = {" + listed(all) +
                 "};\nconst ct::Code kCode = {&kInfo, " + std::to_string(all.size()) +
                 ", kFunctions};\n}  // namespace\n";
        std::string functions = kInterface;
        for (size_t at = 0; (at = functions.find("NAME", at)) != std::string::npos;)
            functions.replace(at, 4, m_how->name);
        m_out += functions;
    }

    const HostProgram* m_program;
    const HostPrinting* m_how;
    const HostFunction* m_function;
    std::map<std::string, std::string> m_fixed;  // arrays by their contents
    std::string m_out;
};

}  // namespace

Result<std::string> printHost(const HostProgram& program, const HostPrinting& how) {
    return withCheckedSizes("the host program", {}, [&] { return HostPrinter(program, how).run(); });
}

}  // namespace cutaway
