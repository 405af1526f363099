#include "engine/runtime/cpu/host_io.h"

#include "engine/runtime/plugin_io.h"

namespace cutaway {
namespace {

class Writer {
  public:
    std::string run(const HostProgram& program) {
        m_out.pod(program.device);
        each(program.kernels, [&](const HostKernel& kernel) { write(kernel); });
        each(program.constants, [&](const std::string& name) { m_out.text(name); });
        each(program.functions, [&](const HostFunction& function) { write(function); });
        each(program.plugins, [&](const PluginLibrary& library) { writePlugin(m_out, library); });
        m_out.pod(program.pluginLimits);
        return std::move(m_out.bytes);
    }

  private:
    template <class Items, class Write>
    void each(const Items& items, Write&& write) {
        m_out.count(items.size());
        for (const auto& item : items) write(item);
    }
    void numbers(const std::vector<size_t>& values) {
        each(values, [&](size_t value) { m_out.count(value); });
    }
    void write(const HostKernel& kernel) {
        m_out.text(kernel.name);
        each(kernel.launches, [&](const HostKernel::Launch& launch) {
            m_out.text(launch.function);
            writeSize(m_out, launch.range);
            m_out.pod(launch.unit);
            m_out.pod(launch.threads);
        });
        each(kernel.sizes, [&](const std::string& size) { m_out.text(size); });
        each(kernel.workspace, [&](const Workspace& space) {
            m_out.pod(space.dtype);
            writeSize(m_out, space.count);
        });
        each(kernel.written, [&](bool written) { m_out.pod(written); });
        m_out.pod(kernel.checks);
    }
    void write(const HostFunction& function) {
        m_out.text(function.name);
        each(function.parameters, [&](const HostParameter& parameter) {
            m_out.text(parameter.name);
            writeType(m_out, parameter.type);
            m_out.pod(parameter.constant);
            m_out.pod(parameter.state);
            m_out.pod(parameter.saved);
            m_out.pod(parameter.shared);
        });
        each(function.symbols, [&](const HostSymbol& symbol) {
            m_out.text(symbol.name);
            m_out.count(symbol.parameter);
            m_out.pod(symbol.dim);
            m_out.pod(symbol.scale);
            m_out.pod(symbol.offset);
            m_out.pod(symbol.least);
            m_out.pod(symbol.most.has_value());
            m_out.pod(symbol.most.value_or(0));
        });
        each(function.guards, [&](const SizeGuard& guard) {
            writeExpr(m_out, guard.condition);
            m_out.text(guard.node);
            m_out.text(guard.op);
        });
        each(function.values, [&](const HostValue& value) {
            m_out.pod(value.kind);
            m_out.pod(value.index);
            writeSize(m_out, value.offset);
            writeType(m_out, value.type);
            m_out.text(value.name);
            m_out.pod(value.constant);
            m_out.pod(value.written);
        });
        each(function.memory, [&](const HostSlot& slot) {
            m_out.count(slot.segment);
            writeSize(m_out, slot.bytes);
        });
        m_out.count(function.names->size());
        for (const Node& node : function.names->nodes()) m_out.pod(function.numberOf(node));
        each(function.steps, [&](const HostStep& step) { write(step); });
        numbers(function.segments);
        m_out.dims(function.results);
        each(function.returnedNumbers, [&](const HostNumber& number) {
            m_out.count(number.result);
            m_out.pod(number.dtype);
            writeSize(m_out, number.value);
            m_out.pod(number.real.has_value());
            if (number.real) m_out.pod(*number.real);
        });
    }
    void write(const HostStep& step) {
        m_out.pod(step.kind);
        m_out.text(step.node);
        m_out.pod(step.bytes);
        m_out.pod(step.spanned);
        m_out.pod(step.flops);
        each(step.ops, [&](const std::string& op) { m_out.text(op); });
        m_out.count(step.kernel);
        m_out.dims(step.buffers);
        m_out.text(step.checking);
        m_out.text(step.op);
        m_out.text(step.library);
        each(step.params, [&](const std::string& param) { m_out.text(param); });
        each(step.args, [&](const Argument& arg) {
            writeArgument(m_out, arg, [](const Node& node) { return index(node.id()); });
        });
        m_out.dims(step.operands);
        writeType(m_out, step.type);
        m_out.dims(step.results);
        each(step.found, [&](const HostStep::BoundSize& found) {
            m_out.text(found.symbol);
            m_out.count(found.result);
            m_out.pod(found.dim);
            m_out.pod(static_cast<bool>(found.value));
            if (found.value) writeSize(m_out, SymInt(found.value));
        });
    }

    ByteWriter m_out;
};

class Reader {
  public:
    explicit Reader(std::string_view bytes) : m_in(bytes) {}

    Result<HostProgram> run() {
        HostProgram program;
        program.device = m_in.pod<Device>();
        m_in.each([&] { read(program.kernels.emplace_back()); });
        m_in.each([&] { program.constants.emplace_back(m_in.text()); });
        m_in.each([&] { read(program.functions.emplace_back(), program); });
        m_in.each([&] { program.plugins.push_back(readPlugin(m_in)); });
        program.pluginLimits = m_in.pod<PluginLimits>();
        if (m_in.failed()) return invalidInput("the host program is damaged");
        return program;
    }

  private:
    /// A number below `limit`, or -1 where there may be none.
    int64_t place(int64_t number, size_t limit, bool none = false) {
        if (number >= static_cast<int64_t>(limit) || number < (none ? -1 : 0)) m_in.fail();
        return number;
    }
    std::vector<int64_t> places(size_t limit, bool none = false) {
        std::vector<int64_t> all = m_in.dims();
        for (const int64_t number : all) place(number, limit, none);
        return all;
    }
    /// A length that is not checked against the bytes that are left.
    size_t number() { return static_cast<size_t>(m_in.pod<uint64_t>()); }
    TensorType tensor() {
        const ValueType type = readType(m_in);
        if (type.tensor() == nullptr) {
            m_in.fail();
            return TensorType();
        }
        return *type.tensor();
    }
    void read(HostKernel& kernel) {
        kernel.name = m_in.text();
        m_in.each([&] {
            auto& launch = kernel.launches.emplace_back();
            launch.function = m_in.text();
            launch.range = readSize(m_in);
            launch.unit = m_in.pod<int64_t>();
            launch.threads = m_in.pod<int>();
        });
        m_in.each([&] { kernel.sizes.emplace_back(m_in.text()); });
        m_in.each([&] {
            auto& space = kernel.workspace.emplace_back();
            space.dtype = m_in.pod<DType>();
            space.count = readSize(m_in);
        });
        m_in.each([&] { kernel.written.push_back(m_in.pod<bool>()); });
        kernel.checks = m_in.pod<bool>();
    }
    void read(HostFunction& function, const HostProgram& program) {
        function.name = m_in.text();
        m_in.each([&] {
            auto& parameter = function.parameters.emplace_back();
            parameter.name = m_in.text();
            parameter.type = readType(m_in);
            parameter.constant = m_in.pod<bool>();
            parameter.state = m_in.pod<bool>();
            const HostFunction& forward = program.functions[0];
            parameter.saved = place(m_in.pod<int64_t>(), forward.results.size(), true);
            parameter.shared = place(m_in.pod<int64_t>(), forward.parameters.size(), true);
        });
        m_in.each([&] {
            auto& symbol = function.symbols.emplace_back();
            symbol.name = m_in.text();
            symbol.parameter = number();
            symbol.dim = m_in.pod<int64_t>();
            symbol.scale = m_in.pod<int64_t>();
            symbol.offset = m_in.pod<int64_t>();
            symbol.least = m_in.pod<int64_t>();
            const bool bounded = m_in.pod<bool>();
            if (const auto most = m_in.pod<int64_t>(); bounded) symbol.most = most;
            if (symbol.parameter >= function.parameters.size() || symbol.scale == 0) m_in.fail();
        });
        m_in.each([&] {
            auto& guard = function.guards.emplace_back();
            guard.condition = readExpr(m_in);
            guard.node = m_in.text();
            guard.op = m_in.text();
            if (!guard.condition) m_in.fail();
        });
        m_in.each([&] {
            auto& value = function.values.emplace_back();
            value.kind = m_in.pod<HostValue::Kind>();
            value.index = m_in.pod<int64_t>();
            value.offset = readSize(m_in);
            value.type = tensor();
            value.name = m_in.text();
            value.constant = m_in.pod<bool>();
            value.written = m_in.pod<bool>();
        });
        m_in.each([&] {
            auto& slot = function.memory.emplace_back();
            slot.segment = number();
            slot.bytes = readSize(m_in);
        });
        checkValues(function, program);
        std::vector<Node*> names;
        m_in.each([&] {
            const int64_t value = place(m_in.pod<int64_t>(), function.values.size());
            if (m_in.failed()) return;
            function.numbers.push_back(value);
            names.push_back(&function.names->placeholder("v" + std::to_string(value),
                                                         function.values[static_cast<size_t>(value)].type));
        });
        const NodeAt nodeAt = [&](uint32_t at) { return at < names.size() ? names[at] : nullptr; };
        m_in.each([&] { read(function.steps.emplace_back(), function, program, nodeAt); });
        m_in.each([&] { function.segments.push_back(number()); });
        function.results = places(function.values.size(), true);
        m_in.each([&] {
            auto& returned = function.returnedNumbers.emplace_back();
            returned.result = number();
            returned.dtype = m_in.pod<DType>();
            returned.value = readSize(m_in);
            if (m_in.pod<bool>()) returned.real = m_in.pod<double>();
            place(static_cast<int64_t>(returned.result), function.results.size());
        });
        if (function.segments.empty() || function.segments[0] != 0) m_in.fail();
    }
    void checkValues(const HostFunction& function, const HostProgram& program) {
        for (size_t i = 0; i < function.values.size(); ++i) {
            const HostValue& value = function.values[i];
            switch (value.kind) {
                case HostValue::Kind::Input: place(value.index, function.parameters.size()); break;
                case HostValue::Kind::Constant: place(value.index, program.constants.size()); break;
                case HostValue::Kind::Slot: place(value.index, function.memory.size()); break;
                case HostValue::Kind::View: place(value.index, i); break;
                case HostValue::Kind::StepOwned: break;
                default: m_in.fail();
            }
        }
    }
    void read(HostStep& step, const HostFunction& function, const HostProgram& program, const NodeAt& nodeAt) {
        step.kind = m_in.pod<HostStepKind>();
        step.node = m_in.text();
        step.bytes = m_in.pod<int64_t>();
        step.spanned = m_in.pod<int64_t>();
        step.flops = m_in.pod<int64_t>();
        m_in.each([&] { step.ops.emplace_back(m_in.text()); });
        step.kernel = number();
        step.buffers = places(function.values.size());
        step.checking = m_in.text();
        step.op = m_in.text();
        step.library = m_in.text();
        m_in.each([&] { step.params.emplace_back(m_in.text()); });
        m_in.each([&] { step.args.push_back(readArgument(m_in, nodeAt)); });
        step.operands = places(function.values.size());
        step.type = readType(m_in);
        step.results = places(function.values.size(), true);
        m_in.each([&] {
            auto& found = step.found.emplace_back();
            found.symbol = m_in.text();
            found.result = number();
            found.dim = m_in.pod<int64_t>();
            if (m_in.pod<bool>()) found.value = readSize(m_in).expr();
        });
        if (step.kind == HostStepKind::Kernel && step.kernel >= program.kernels.size()) m_in.fail();
        if (step.kind == HostStepKind::Library && step.params.size() != step.args.size()) m_in.fail();
    }

    ByteReader m_in;
};

}  // namespace

std::string serialize(const HostProgram& program) { return Writer().run(program); }
Result<HostProgram> deserializeHost(std::string_view bytes) { return Reader(bytes).run(); }

}  // namespace cutaway
