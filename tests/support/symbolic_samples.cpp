#include "tests/support/symbolic_samples.h"

#include <numeric>
#include <set>

#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"

namespace cutaway::testing {
namespace {

constexpr const char* kGaps = "elements that do not lie without gaps";
using Symbols = std::map<int64_t, Expr>;  // by the size that the sample has

SymInt symbolic(int64_t size, const Symbols& symbols) {
    const auto found = symbols.find(size);
    return found == symbols.end() ? SymInt(size) : SymInt(found->second);
}

/// The type with symbols; nothing if its elements do not lie without gaps, since no symbol says how they would lie at
/// other sizes.
std::optional<TensorType> symbolic(const TensorType& type, const Symbols& symbols) {
    TensorType out = type;
    for (SymInt& size : out.sizes) size = symbolic(size.value(), symbols);
    if (out.sizes == type.sizes) return out;
    std::vector<size_t> order(type.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return type.strides[a].value() > type.strides[b].value(); });
    SymInt step = 1;
    for (size_t i = order.size(); i-- > 0;) {
        const size_t dim = order[i];
        if (type.sizes[dim] == SymInt(0)) return std::nullopt;
        if (!(type.sizes[dim] == SymInt(1)) && !(valueFor(step, [&] {
                                                     SymbolValues values;
                                                     for (const auto& [size, symbol] : symbols)
                                                         values[symbol->name] = size;
                                                     return values;
                                                 }()) == type.strides[dim].value()))
            return std::nullopt;
        out.strides[dim] = type.sizes[dim] == SymInt(1) ? type.strides[dim] : step;
        step = step * out.sizes[dim];
    }
    if (type.isContiguous()) out.strides = contiguousStrides(out.sizes);
    return out;
}

/// A size, or a product of two, that an argument names.
Argument symbolic(const Argument& argument, const Symbols& symbols) {
    if (const auto* items = argument.list()) {
        std::vector<Argument> out;
        for (const Argument& item : *items) out.push_back(symbolic(item, symbols));
        return Argument(std::move(out));
    }
    const auto* number = argument.get<int64_t>();
    if (number == nullptr) return argument;
    if (symbols.contains(*number)) return Argument(symbolic(*number, symbols));
    for (const auto& [size, symbol] : symbols)
        if (*number > size && *number % size == 0 && symbols.contains(*number / size))
            return Argument(SymInt(symbol) * symbolic(*number / size, symbols));
    return argument;
}

/// Whether PyTorch's schema takes symbols there: "SymInt[] size".
bool takesSymbols(const Op& op, const std::string& param) {
    const std::string_view schema = op.def()->schema;
    for (size_t at = schema.find(" " + param); at != std::string_view::npos; at = schema.find(" " + param, at + 1)) {
        const char next = schema[at + 1 + param.size()];
        if (next == ',' || next == '=' || next == ')') {
            const size_t begin = schema.find_last_of(" (", at - 1) + 1;
            return schema.substr(begin, at - begin).starts_with("SymInt");
        }
    }
    return false;
}

Result<std::shared_ptr<Module>> build(const SampleCall& sample, const Symbols& symbols, bool arguments) {
    auto module = std::make_shared<Module>();
    Graph& graph = module->graph();
    std::map<const Node*, Node*> copies;
    for (const Node* placeholder : sample.placeholders) {
        auto type = symbolic(placeholder->tensor(), symbols);
        if (!type) return unsupported(kGaps);
        type->requiresGrad = isFloating(type->dtype) || isComplex(type->dtype);
        copies[placeholder] = &graph.placeholder("x", ValueType(std::move(*type)));
        module->inputs.emplace_back();
    }
    const Schema& schema = *sample.call->op().schema();
    GraphBuilder builder(graph);
    std::vector<Argument> args;
    for (size_t i = 0; i < sample.call->args().size(); ++i) {
        const Argument& arg = sample.call->arg(i);
        if (arguments && takesSymbols(sample.call->op(), schema.params[i].name)) args.push_back(symbolic(arg, symbols));
        else args.push_back(arg.mapNodes([&](Node* node) { return copies.at(node); }));
    }
    const Value call = builder.callBound(sample.call->op(), std::move(args));
    if (builder.error()) return *builder.error();
    std::vector<Argument> results;
    if (const TupleType* types = call.node()->type().tuple()) {
        for (size_t i = 0; i < types->size(); ++i)
            results.push_back((*types)[i].tensor() ? Argument(call[static_cast<int64_t>(i)].node()) : Argument());
    } else {
        results.push_back(Argument(call.node()));
    }
    graph.output(ArgumentList{std::move(results), true});
    module->outputs.resize(graph.outputs().size());
    return module;
}

}  // namespace

std::vector<SymbolicSample> symbolicForms(const SampleCall& sample, std::vector<SymbolicRefusal>& refusals) {
    Symbols all;
    for (const TensorSpec& spec : sample.specs)
        for (const int64_t size : spec.sizes)
            if (size >= 2) all.emplace(size, Expr::symbol("s" + std::to_string(size)));
    std::vector<Symbols> choices;
    if (all.size() > 1) choices.push_back(all);
    for (const auto& one : all) choices.push_back({one});
    std::vector<SymbolicSample> forms;
    for (const Symbols& symbols : choices) {
        SymbolicSample form;
        for (const auto& [size, symbol] : symbols) {
            form.values[symbol->name] = size;
            form.name += (form.name.empty() ? "" : " ") + symbol->name;
        }
        auto plain = build(sample, symbols, false);
        auto named = plain ? plain : build(sample, symbols, true);
        if (!named && named.error().message == kGaps) continue;
        if (!named) {
            refusals.push_back({form.name, named.error().message});
            continue;
        }
        form.module = *named;
        if (!plain) form.name += " (and arguments)";
        forms.push_back(std::move(form));
    }
    return forms;
}

Result<Snapshot> afterPasses(const Snapshot& module, Mode mode) {
    CompileRequest options;
    options.mode = mode;
    CT_TRY(const CompileTrace trace, runPipeline(module, options));
    if (trace.failed())
        return Error{
            ErrorCode::Unsupported, trace.steps.back().info.name + ": " + trace.steps.back().info.error, {}, {}};
    return wholeAt(trace, static_cast<int>(trace.steps.size()) - 1, trace.result(), true);
}

std::string differing(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    if (actual.size() != expected.size())
        return std::to_string(actual.size()) + " results instead of " + std::to_string(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        if (actual[i].defined() != expected[i].defined()) return "result " + std::to_string(i) + " is None on one side";
        if (!expected[i].defined()) continue;
        const double relative = byteSize(expected[i].dtype()) == 1 ? 0.5 : isHalf(expected[i].dtype()) ? 4e-2 : 1e-4;
        const bool real = isFloating(expected[i].dtype()) || isComplex(expected[i].dtype());
        const Comparison result = compare(actual[i], expected[i], real ? Tolerance{relative, relative} : Tolerance{});
        if (!result.sameType) return "result " + std::to_string(i) + " has another type";
        if (!result.within)
            return "result " + std::to_string(i) + " differs by " + std::to_string(result.maxAbsoluteError);
    }
    return {};
}

bool drawsNumbers(const Op& op) {
    return op.is(Tag::Random) || op.name().find("empty") != std::string::npos ||
           op.name().find("dropout") != std::string::npos;
}

}  // namespace cutaway::testing
