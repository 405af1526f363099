// Host programs for people.
#include "engine/host/host_program.h"
#include "engine/libraries/choose.h"
#include "engine/text/literal.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

std::string joined(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
    return all;
}

class Printer {
  public:
    Printer(const HostProgram& program, const HostFunction& function) : m_program(&program), m_function(&function) {}

    std::string run() {
        std::vector<std::string> parameters;
        for (const HostParameter& parameter : m_function->parameters)
            parameters.push_back(parameter.name + ": " + parameter.type.text() +
                                 (parameter.constant ? " constant" : "") + origin(parameter));
        line("function " + m_function->name + "(" + joined(parameters) + ")");
        for (const HostSymbol& symbol : m_function->symbols) line("    " + text(symbol));
        for (const SizeGuard& guard : m_function->guards) line("    guard: " + guard.text());
        for (size_t i = 0; i < m_function->memory.size(); ++i)
            line("    slot" + std::to_string(i) + ": " + m_function->memory[i].bytes.text() + " bytes");
        for (size_t i = 0; i < m_function->values.size(); ++i) line("    " + text(i, m_function->values[i]));
        for (size_t segment = 0; segment < m_function->segments.size(); ++segment) {
            if (segment > 0) line("    -- memory of the rest is laid out");
            const auto [first, end] = m_function->stepsOf(segment);
            for (size_t i = first; i < end; ++i) line("    " + text(m_function->steps[i]));
        }
        std::vector<std::string> results;
        for (const int64_t result : m_function->results) results.push_back(name(result));
        for (const HostNumber& number : m_function->returnedNumbers)
            results[number.result] = number.real ? fxtext::realText(*number.real) : number.value.text();
        line("    return " + joined(results));
        return std::move(m_text);
    }

  private:
    void line(const std::string& text) { m_text += text + "\n"; }
    static std::string name(int64_t value) { return value < 0 ? "None" : "v" + std::to_string(value); }
    static std::string names(const std::vector<int64_t>& values) {
        std::vector<std::string> all;
        for (const int64_t value : values) all.push_back(name(value));
        return joined(all);
    }

    /// " = result 3 of forward": where a parameter of a backward comes from; empty for all others.
    std::string origin(const HostParameter& parameter) const {
        const HostFunction& forward = m_program->functions[0];
        if (parameter.shared >= 0)
            return " = " + forward.parameters[static_cast<size_t>(parameter.shared)].name + " of " + forward.name;
        return parameter.saved < 0 ? "" : " = result " + std::to_string(parameter.saved) + " of " + forward.name;
    }
    std::string text(const HostSymbol& symbol) const {
        const std::string from = m_function->parameters[symbol.parameter].name;
        std::string source = symbol.dim < 0 ? from : "size " + std::to_string(symbol.dim) + " of " + from;
        if (symbol.offset != 0) source = "(" + source + " - " + std::to_string(symbol.offset) + ")";
        if (symbol.scale != 1) source += " / " + std::to_string(symbol.scale);
        std::string range;
        if (symbol.least > 0) range += ", at least " + std::to_string(symbol.least);
        if (symbol.most) range += ", at most " + std::to_string(*symbol.most);
        return symbol.name + " = " + source + range;
    }
    std::string text(size_t number, const HostValue& value) const {
        return name(static_cast<int64_t>(number)) + ": " + value.type.text() + " = " + place(value) +
               (value.written && value.kind == HostValue::Kind::Input ? ", written" : "") + "  # " + value.name;
    }
    std::string place(const HostValue& value) const {
        const std::string offset = value.offset == SymInt(0) ? "" : " + " + value.offset.text();
        switch (value.kind) {
            case HostValue::Kind::Input: return m_function->parameters[static_cast<size_t>(value.index)].name;
            case HostValue::Kind::Constant: return "constant " + m_program->constants[static_cast<size_t>(value.index)];
            case HostValue::Kind::Slot: return "slot" + std::to_string(value.index) + offset;
            case HostValue::Kind::StepOwned: return "memory of its own";
            default: return "view of " + name(value.index) + offset;
        }
    }
    static std::string by(const HostStep& step) {
        if (step.kind == HostStepKind::Functions) return "";
        return " by " + (step.library.empty() ? "the reference" : step.library);
    }
    std::string text(const HostStep& step) const {
        if (step.kind == HostStepKind::Kernel) {
            const HostKernel& kernel = m_program->kernels[step.kernel];
            std::vector<std::string> ranges;
            for (const HostKernel::Launch& launch : kernel.launches) ranges.push_back(launch.range.text());
            return kernel.name + "(" + names(step.buffers) + ") over " + joined(ranges) + "  # " + step.node;
        }
        std::vector<std::string> args;
        for (const Argument& arg : step.args) args.push_back(printArgument(arg));
        std::string line =
            names(step.results) + " = " + step.op + "(" + joined(args) + ")" + by(step) + "  # " + step.node;
        for (const HostStep::BoundSize& found : step.found)
            line +=
                "\n    " + found.symbol + " = " +
                (found.value     ? cutaway::text(found.value)
                 : found.dim < 0 ? "result " + std::to_string(found.result)
                                 : "size " + std::to_string(found.dim) + " of result " + std::to_string(found.result));
        return line;
    }
    const HostProgram* m_program;
    const HostFunction* m_function;
    std::string m_text;
};

}  // namespace

const PluginLibrary* pluginOf(const HostProgram& program, std::string_view library) {
    for (const PluginLibrary& each : program.plugins)
        if (each.name == library) return &each;
    return nullptr;
}

bool roundsToTf32(const HostProgram& program) {
    for (const HostFunction& function : program.functions)
        for (const HostStep& step : function.steps)
            if (!step.params.empty() && step.params.back() == kAllowTf32) return true;
    return false;
}

std::string text(const HostProgram& program) {
    std::string all;
    for (const HostKernel& kernel : program.kernels) {
        all += kernel.name + ":";
        for (const HostKernel::Launch& launch : kernel.launches)
            all += " " + launch.function + " over " + launch.range.text();
        for (const Workspace& space : kernel.workspace)
            all += ", workspace " + std::string(info(space.dtype).abbreviation) + "[" + space.count.text() + "]";
        all += "\n";
    }
    for (const HostFunction& function : program.functions) all += "\n" + Printer(program, function).run();
    return all;
}

}  // namespace cutaway
