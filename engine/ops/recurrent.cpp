// Recurrent layers and cells, unrolled over their steps: the products with the inputs of all steps at once, then step
// by step the product with the state and the gates.
#include <algorithm>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/mkldnn.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

enum class CellKind { Lstm, Gru, Tanh, Relu };
constexpr int64_t gatesOf(CellKind kind) { return kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1; }

Value cellLinear(Decomposition& d, const Value& x, const Value& weight, const Value& bias) {
    return d.call("aten.linear.default", {x, weight, bias ? Argument(bias) : Argument()});
}
/// The gates, which lie side by side in the last dim.
std::vector<Value> parts(Decomposition& d, std::string_view op, const Value& x, int64_t count, int64_t size) {
    const Value tuple = d.call(op, {x, size, x ? x.rank() - 1 : 1});
    std::vector<Value> values;
    for (int64_t i = 0; tuple && i < count; ++i) values.push_back(tuple[i]);
    if (!tuple) values.resize(static_cast<size_t>(count));
    return values;
}

/// Weights of one layer in one direction.
struct Weights {
    Value input, state, inputBias, stateBias, projection;
};
struct State {
    Value hidden, cell;
};

/// One step from the products `fromInput` and `fromState`, each with the gates side by side.
State lstmStep(Decomposition& d, std::string_view split, const Value& gates, const Value& cell, int64_t size) {
    const std::vector<Value> gate = parts(d, split, gates, 4, size);
    const Value in = unary("aten.sigmoid.default", gate[0]), forget = unary("aten.sigmoid.default", gate[1]);
    const Value fresh = unary("aten.tanh.default", gate[2]), out = unary("aten.sigmoid.default", gate[3]);
    const Value kept = forget * cell;
    const Value next = kept + in * fresh;
    return {out * unary("aten.tanh.default", next), next};
}
Value gruStep(Decomposition& d, const std::vector<Value>& fromInput, const std::vector<Value>& fromState,
              const Value& hidden) {
    const Value reset = unary("aten.sigmoid.default", fromState[0] + fromInput[0]);
    const Value update = unary("aten.sigmoid.default", fromState[1] + fromInput[1]);
    const Value fresh = unary("aten.tanh.default", d.call("aten.add.Tensor", {fromInput[2], fromState[2] * reset}));
    return (hidden - fresh) * update + fresh;
}

/// One layer in one direction over x [steps, batch, features], from `state` [batch, size] to the last state: the hidden
/// states in the order of the steps, [steps, batch, size]. Within, states are [1, batch, size], as PyTorch unrolls
/// them.
Value runLayer(Decomposition& d, CellKind kind, const Value& x, const Weights& w, State& state, bool backwards) {
    const int64_t steps = x.size(0).value(), size = w.state.size(0).value() / gatesOf(kind);
    Value all = cellLinear(d, x, w.input, w.inputBias);
    if (backwards && all) all = d.call("aten.flip.default", {all, Argument(std::vector<Argument>{0})});
    if (!all) return {};
    state.hidden = unsqueeze(state.hidden, 0);
    if (state.cell) state.cell = unsqueeze(state.cell, 0);
    const Value perStep = d.call("aten.unbind.int", {all});
    std::vector<Argument> hidden;
    for (int64_t step = 0; step < steps && perStep; ++step) {
        const Value input = perStep[step];
        if (kind == CellKind::Gru) {
            const std::vector<Value> fromInput = parts(d, "aten.split.Tensor", input, 3, size);
            const std::vector<Value> fromState =
                parts(d, "aten.split.Tensor", cellLinear(d, state.hidden, w.state, w.stateBias), 3, size);
            state.hidden = gruStep(d, fromInput, fromState, state.hidden);
        } else {
            const Value sum = cellLinear(d, state.hidden, w.state, w.stateBias) + input;
            if (kind == CellKind::Lstm) state = lstmStep(d, "aten.split.Tensor", sum, state.cell, size);
            else state.hidden = unary(kind == CellKind::Tanh ? "aten.tanh.default" : "aten.relu.default", sum);
            if (w.projection) state.hidden = cellLinear(d, state.hidden, w.projection, Value());
        }
        if (!state.hidden) return {};
        hidden.insert(backwards ? hidden.begin() : hidden.end(), Argument(state.hidden));
    }
    if (hidden.empty()) return {};
    const Value out = d.call("aten.cat.default", {Argument(std::move(hidden)), 0});
    state.hidden = d.call("aten.squeeze.dim", {state.hidden, 0});
    if (state.cell) state.cell = d.call("aten.squeeze.dim", {state.cell, 0});
    return out;
}

Value stacked(Decomposition& d, const std::vector<Value>& values) {
    std::vector<Argument> items;
    for (const Value& value : values) items.emplace_back(value ? Argument(value) : Argument());
    return d.builder().error() ? Value() : d.call("aten.stack.default", {Argument(std::move(items)), 0});
}

struct Layers {
    int64_t layers = 1, directions = 1;
    std::vector<Weights> weights;  // layer by layer, both directions of a layer together
};
/// Checks what unrolling relies on: fixed sizes, and as many weights and states as layers and directions ask for.
Result<Layers> readLayers(const Decomposition& d, CellKind kind, const Value& x, const std::vector<Value>& states) {
    Layers all;
    CT_TRY(all.layers, d.integer("num_layers"));
    if (all.layers < 1 || all.layers > int64_t{1} << 20)
        return d.fail("cannot have " + std::to_string(all.layers) + " layers");
    all.directions = d.flag("bidirectional") ? 2 : 1;
    const int64_t count = all.layers * all.directions;
    if (x.rank() != 3) return d.fail("needs an input of 3 dims, not " + x.type().text());
    const SymInt& steps = x.type().sizes[d.flag("batch_first") ? 1 : 0];
    if (!steps.isInt())
        return unsupported(d.op().name() + ": unrolling needs a fixed number of steps", {},
                           {"set the sizes of the inputs"});
    if (steps.value() == 0) return d.fail("the sequence has no steps");
    for (const Value& state : states)
        if (state.rank() != 3 || !(state.size(0) == SymInt(count)))
            return d.fail("the state " + state.type().text() + " does not hold " + std::to_string(count) + " layers");
    const std::vector<Value> params = d.list("params");
    const bool bias = d.flag("has_biases"), projected = states.size() == 2 && !(states[0].size(2) == states[1].size(2));
    const size_t each = (bias ? 4 : 2) + (projected ? 1 : 0);
    if (params.size() != each * static_cast<size_t>(count))
        return d.fail(std::to_string(params.size()) + " weights for " + std::to_string(count) + " layers of " +
                      std::to_string(each));
    for (size_t i = 0; i < params.size(); i += each) {
        Weights w{params[i], params[i + 1], {}, {}, {}};
        if (w.input.rank() != 2 || w.state.rank() != 2 || !w.state.size(0).isInt() ||
            w.state.size(0).value() % gatesOf(kind) != 0)
            return d.fail("the weights " + w.input.type().text() + " and " + w.state.type().text() +
                          " are not gates by features");
        if (bias) {
            w.inputBias = params[i + 2];
            w.stateBias = params[i + 3];
        }
        if (projected) w.projection = params[i + each - 1];
        all.weights.push_back(w);
    }
    return all;
}

template <CellKind kind>
Values decomposeLayers(Decomposition& d) {
    Value x = d.in("input");
    const std::vector<Value> states = kind == CellKind::Lstm ? d.list("hx") : std::vector<Value>{d.in("hx")};
    const auto all = states.size() == (kind == CellKind::Lstm ? 2 : 1)
                         ? readLayers(d, kind, x, states)
                         : Result<Layers>(d.fail("needs a hidden and a cell state"));
    if (!all) {
        d.builder().fail(all.error());
        return Value();
    }
    const Value hiddenStates = d.call("aten.unbind.int", {states[0]});
    const Value cellStates = kind == CellKind::Lstm ? d.call("aten.unbind.int", {states[1]}) : Value();
    const bool batchFirst = d.flag("batch_first"), drops = d.flag("train") && d.real("dropout") != 0;
    if (batchFirst) x = d.call("aten.transpose.int", {x, 0, 1});
    std::vector<Value> lastHidden, lastCell;
    for (int64_t layer = 0; layer < all->layers; ++layer) {
        std::vector<Argument> outputs;
        for (int64_t direction = 0; direction < all->directions; ++direction) {
            const int64_t position = layer * all->directions + direction;
            State state{hiddenStates[position], kind == CellKind::Lstm ? cellStates[position] : Value()};
            const Value hidden =
                runLayer(d, kind, x, all->weights[static_cast<size_t>(position)], state, direction == 1);
            if (!hidden || d.builder().error()) return Value();
            outputs.emplace_back(hidden);
            lastHidden.push_back(state.hidden);
            lastCell.push_back(state.cell);
        }
        x = outputs.size() == 1 ? Value(d.builder(), outputs[0].node())
                                : d.call("aten.cat.default", {Argument(std::move(outputs)), 2});
        if (drops && layer + 1 < all->layers) x = d.call("aten.dropout.default", {x, d.arg("dropout"), true});
    }
    if (batchFirst) x = d.call("aten.transpose.int", {x, 0, 1});
    const Value hidden = stacked(d, lastHidden);
    if (kind != CellKind::Lstm) return {x, hidden};
    return {x, hidden, stacked(d, lastCell)};
}

// -- oneDNN's layer: one, in one direction

/// What the library's layer takes. PyTorch makes calls of it for LSTMs only (mode 2); others it refuses when they run.
Result<ValueType> inferLibraryLayer(const InferContext& c) {
    std::vector<TensorType> types;
    for (const std::string_view param : {"input", "weight0", "weight1", "hx_", "cx_"}) {
        CT_TRY(TensorType type, c.tensor(param));
        types.push_back(std::move(type));
    }
    const TensorType &x = types[0], &input = types[1], &state = types[2];
    const auto number = [&](std::string_view param) { return c.arg(param).asInt().value_or(-1); };
    if (x.dtype != DType::F32 && !isHalf(x.dtype))
        return c.fail("takes float32, bfloat16 or float16, not " + std::string(info(x.dtype).torchName));
    if (number("mode") != 2) return c.fail("computes LSTM layers (mode 2), not mode " + std::to_string(number("mode")));
    if (number("num_layers") != 1 || number("bidirectional") != 0)
        return c.fail("computes one layer in one direction: PyTorch makes a call for each");
    if (const auto* sizes = c.arg("batch_sizes").list(); sizes && !sizes->empty())
        return unsupported(c.op().name() + ": packed sequences", {}, {"pad the sequences to one length"});
    const SymInt size(number("hidden_size"));
    if (x.rank() != 3 || input.rank() != 2 || state.rank() != 2 || !(input.sizes[1] == x.sizes[2]) ||
        !(state.sizes[1] == size) || !(input.sizes[0] == size * SymInt(4)) || !(state.sizes[0] == size * SymInt(4)))
        return c.fail("the weights " + input.text() + " and " + state.text() + " are not four gates of " + size.text() +
                      " for an input " + x.text());
    for (size_t i = 3; i < types.size(); ++i)
        if (types[i].rank() != 3 || !(types[i].sizes[0] == SymInt(1)) || !(types[i].sizes[1] == x.sizes[1]) ||
            !(types[i].sizes[2] == size))
            return c.fail("the state " + types[i].text() + " is not one of " + size.text() + " for each item");
    if (!x.sizes[0].isInt())
        return unsupported(c.op().name() + ": unrolling needs a fixed number of steps", {},
                           {"set the sizes of the inputs"});
    if (x.sizes[0].value() == 0) return c.fail("the sequence has no steps");
    return inferExpanded(c);
}
/// In f32 with one rounding at the end, as the library's packed calls. The workspace is empty: the backward computes
/// the gates again.
Values decomposeLibraryLayer(Decomposition& d) {
    const bool bias = d.flag("has_biases");
    const auto operand = [&](std::string_view param) { return widened(d.in(param)); };
    const Weights weights{operand("weight0"),
                          operand("weight1"),
                          bias ? operand("weight2") : Value(),
                          bias ? operand("weight3") : Value(),
                          {}};
    State state{d.call("aten.squeeze.dim", {operand("hx_"), 0}), d.call("aten.squeeze.dim", {operand("cx_"), 0})};
    const Value all = runLayer(d, CellKind::Lstm, operand("input"), weights, state, d.flag("reverse"));
    if (!all) return Value();
    const DType dtype = d.in("input").dtype();
    return {convert(all, dtype), convert(unsqueeze(state.hidden, 0), dtype), convert(unsqueeze(state.cell, 0), dtype),
            full(d.builder(), {0}, Scalar(int64_t{0}), DType::U8, d.in("input").type().device)};
}

/// Steps of a tensor [steps, ...], in the order in which the layer takes them.
std::vector<Value> stepsOf(Decomposition& d, const Value& x, bool backwards) {
    std::vector<Value> steps;
    const int64_t count = x.size(0).value();
    for (int64_t t = 0; t < count; ++t)
        steps.push_back(d.call("aten.select.int", {x, int64_t{0}, backwards ? count - 1 - t : t}));
    return steps;
}
Value inOrder(Decomposition& d, std::vector<Value> steps, bool backwards) {
    if (backwards) std::reverse(steps.begin(), steps.end());
    return d.call("aten.stack.default", {Argument(std::vector<Argument>(steps.begin(), steps.end())), int64_t{0}});
}
/// Through the steps from the last to the first; the gates follow from the operands and the hidden states of all steps.
Values decomposeLibraryLayerBackward(Decomposition& d) {
    const auto operand = [&](std::string_view param) { return widened(d.in(param)); };
    const Value x = operand("input"), output = operand("output"), toGates = operand("weight1"),
                toState = operand("weight2");
    const auto* sizes = d.arg("batch_sizes").list();
    if (d.integerOr("mode", 2) != 2 || d.integerOr("num_layers", 1) != 1 || d.flag("bidirectional") ||
        (sizes && !sizes->empty()))
        return refuse(d, "computes one LSTM layer (mode 2) in one direction, of sequences of one length");
    if (x.rank() != 3 || output.rank() != 3 || toGates.rank() != 2 || toState.rank() != 2)
        return refuse(d, "needs an input and an output of 3 dims, and matrices of weights");
    if (!x.size(0).isInt() || x.size(0) == SymInt(0))
        return refuse(d, "needs a fixed number of steps; set the sizes of the inputs");
    const bool bias = d.flag("has_biases"), reverse = d.flag("reverse");
    const int64_t size = d.integerOr("hidden_size", 1);
    const SymDims stateSizes = {x.size(1), SymInt(size)};
    const Value hidden = reshape(operand("hx_"), stateSizes), cell = reshape(operand("cx_tmp"), stateSizes);
    const auto given = [&](std::string_view param) { return d.arg(param).isNone() ? Value() : widened(d.in(param)); };
    std::vector<Value> before = stepsOf(d, output, reverse);
    before.insert(before.begin(), hidden);
    before.pop_back();
    const Value states = inOrder(d, before, reverse);
    const Value gates = cellLinear(d, x, toGates, bias ? operand("weight3") : Value()) +
                        cellLinear(d, states, toState, bias ? operand("weight4") : Value());
    struct Step {
        Value in, forget, fresh, out, cellBefore, cell;
    };
    std::vector<Step> steps;
    Value last = cell;
    for (const Value& gate : stepsOf(d, gates, reverse)) {
        const std::vector<Value> part = parts(d, "aten.split.Tensor", gate, 4, size);
        Step step{unary("aten.sigmoid.default", part[0]),
                  unary("aten.sigmoid.default", part[1]),
                  unary("aten.tanh.default", part[2]),
                  unary("aten.sigmoid.default", part[3]),
                  last,
                  {}};
        step.cell = last = step.forget * last + step.in * step.fresh;
        steps.push_back(step);
    }
    const Value none = full(d.builder(), stateSizes, Scalar(0.0), x.dtype(), x.type().device);
    const Value ofOutput = given("grad_output"), lastHidden = given("grad_hy"), lastCell = given("grad_cy");
    const std::vector<Value> arriving = ofOutput ? stepsOf(d, ofOutput, reverse) : std::vector<Value>();
    Value ofHidden = lastHidden ? reshape(lastHidden, stateSizes) : none,
          ofCell = lastCell ? reshape(lastCell, stateSizes) : none;
    std::vector<Value> ofGates(steps.size());
    const auto slope = [](const Value& sigmoid) { return sigmoid - sigmoid * sigmoid; };
    for (size_t t = steps.size(); t-- > 0;) {
        const Step& step = steps[t];
        const Value gradient = arriving.empty() ? ofHidden : ofHidden + arriving[t];
        const Value squashed = unary("aten.tanh.default", step.cell);
        const Value through = gradient * step.out;
        ofCell = ofCell + (through - through * squashed * squashed);
        const std::vector<Argument> four = {
            ofCell * step.fresh * slope(step.in), ofCell * step.cellBefore * slope(step.forget),
            ofCell * step.in - ofCell * step.in * step.fresh * step.fresh, gradient * squashed * slope(step.out)};
        ofGates[t] = d.call("aten.cat.default", {Argument(four), int64_t{1}});
        ofHidden = d.call("aten.mm.default", {ofGates[t], toState});
        ofCell = ofCell * step.forget;
    }
    const Value all = inOrder(d, ofGates, reverse);
    const SymInt rows = x.size(0) * x.size(1), width(4 * size);
    const Value flat = reshape(all, {rows, width}), columns = permute(flat, {1, 0});
    const Value ofBias = bias ? sum(flat, {0}, false) : Value();
    const auto like = [&](const Value& gradient, std::string_view param) {
        return convert(reshape(gradient, d.in(param).sizes()), d.in(param).dtype());
    };
    const auto biasLike = [&](std::string_view param) {
        return bias ? like(ofBias, param) : unary("aten.zeros_like.default", d.in(param));
    };
    return {like(d.call("aten.matmul.default", {all, toGates}), "input"),
            like(d.call("aten.mm.default", {columns, reshape(x, {rows, x.size(2)})}), "weight1"),
            like(d.call("aten.mm.default", {columns, reshape(states, {rows, SymInt(size)})}), "weight2"),
            biasLike("weight3"),
            biasLike("weight4"),
            like(ofHidden, "hx_"),
            like(ofCell, "cx_tmp")};
}

// -- cells

Value optional(const Decomposition& d, const char* param) { return d.has(param) ? d.in(param) : Value(); }
/// Size of the state; an error unless w_hh has `gates` rows for each of its elements.
std::optional<int64_t> stateSize(Decomposition& d, const Value& hidden, int64_t gates) {
    const Value weight = d.in("w_hh");
    if (!isFloating(hidden.dtype())) {
        d.builder().fail(d.fail("needs a floating-point state, not " + hidden.type().text()));
        return std::nullopt;
    }
    if (hidden.rank() == 2 && weight.rank() == 2 && hidden.size(1).isInt() &&
        weight.size(0) == hidden.size(1) * SymInt(gates))
        return hidden.size(1).value();
    d.builder().fail(d.fail("the state " + hidden.type().text() + " does not fit the weights " + weight.type().text()));
    return std::nullopt;
}
Values decomposeLstmCell(Decomposition& d) {
    const std::vector<Value> states = d.list("hx");
    if (states.size() != 2) {
        d.builder().fail(d.fail("needs a hidden and a cell state"));
        return Value();
    }
    const auto size = stateSize(d, states[0], 4);
    if (!size) return Value();
    const Value fromState = cellLinear(d, states[0], d.in("w_hh"), optional(d, "b_hh"));
    const Value gates = fromState + cellLinear(d, d.in("input"), d.in("w_ih"), optional(d, "b_ih"));
    const State next = lstmStep(d, "aten.unsafe_split.Tensor", gates, states[1], *size);
    return {next.hidden, next.cell};
}
Values decomposeGruCell(Decomposition& d) {
    const Value hidden = d.in("hx");
    const auto size = stateSize(d, hidden, 3);
    if (!size) return Value();
    const Value fromInput = cellLinear(d, d.in("input"), d.in("w_ih"), optional(d, "b_ih"));
    const std::vector<Value> input = parts(d, "aten.unsafe_split.Tensor", fromInput, 3, *size);
    const Value fromState = cellLinear(d, hidden, d.in("w_hh"), optional(d, "b_hh"));
    return gruStep(d, input, parts(d, "aten.unsafe_split.Tensor", fromState, 3, *size), hidden);
}
template <CellKind kind>
Values decomposePlainCell(Decomposition& d) {
    const Value fromState = cellLinear(d, d.in("hx"), d.in("w_hh"), optional(d, "b_hh"));
    const Value sum = fromState + cellLinear(d, d.in("input"), d.in("w_ih"), optional(d, "b_ih"));
    return unary(kind == CellKind::Tanh ? "aten.tanh.default" : "aten.relu.default", sum);
}

constexpr OpDef cellRow(std::string_view schema, Fn<Values(Decomposition&)> decompose, std::string_view samples) {
    return {.schema = schema,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Composite,
            .decompose = decompose,
            .samples = samples};
}

constexpr OpDef kRecurrentOps[] = {
    // params: per layer and direction w_ih, w_hh, b_ih, b_hh (biases if there are any), and the projection if there is
    // one.
    cellRow(
        "aten.lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        decomposeLayers<CellKind::Lstm>,
        "f32[3, 2, 4], [f32[1, 2, 5], f32[1, 2, 5]], [f32[20, 4], f32[20, 5], f32[20], f32[20]], True, 1, 0.0, False, False, False\n"
        "f32[2, 3, 4], [f32[2, 2, 3], f32[2, 2, 3]], [f32[12, 4], f32[12, 3], f32[12, 4], f32[12, 3]], False, 1, 0.0, False, True, True\n"
        "f64[2, 2, 3], [f64[2, 2, 2], f64[2, 2, 2]], [f64[8, 3], f64[8, 2], f64[8], f64[8], f64[8, 2], f64[8, 2], f64[8], f64[8]], True, 2, 0.0, False, False, False\n"
        "f32[2, 2, 3], [f32[1, 2, 2], f32[1, 2, 4]], [f32[16, 3], f32[16, 2], f32[16], f32[16], f32[2, 4]], True, 1, 0.0, False, False, False"),
    cellRow(
        "aten.gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        decomposeLayers<CellKind::Gru>,
        "f32[3, 2, 4], f32[1, 2, 5], [f32[15, 4], f32[15, 5], f32[15], f32[15]], True, 1, 0.0, False, False, False\n"
        "f32[2, 3, 4], f32[2, 2, 3], [f32[9, 4], f32[9, 3], f32[9, 4], f32[9, 3]], False, 1, 0.0, False, True, True\n"
        "f64[2, 2, 3], f64[2, 2, 2], [f64[6, 3], f64[6, 2], f64[6], f64[6], f64[6, 2], f64[6, 2], f64[6], f64[6]], True, 2, 0.0, False, False, False"),
    cellRow(
        "aten.rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        decomposeLayers<CellKind::Tanh>,
        "f32[3, 2, 4], f32[1, 2, 5], [f32[5, 4], f32[5, 5], f32[5], f32[5]], True, 1, 0.0, False, False, False\n"
        "f32[2, 3, 4], f32[2, 2, 3], [f32[3, 4], f32[3, 3], f32[3, 4], f32[3, 3]], False, 1, 0.0, False, True, True"),
    cellRow(
        "aten.rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        decomposeLayers<CellKind::Relu>,
        "f32[3, 2, 4], f32[1, 2, 5], [f32[5, 4], f32[5, 5], f32[5], f32[5]], True, 1, 0.0, False, False, False"),
    // What PyTorch makes of a layer where nothing is differentiated; freezing packs its weights.
    {.schema =
         "aten.mkldnn_rnn_layer.default(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferLibraryLayer,
     .eval = evalExpanded,
     .decompose = decomposeLibraryLayer,
     .samples = R"(
f32[3, 2, 3], f32[16, 3], f32[16, 4], f32[16], f32[16], f32[1, 2, 4], f32[1, 2, 4], False, [], 2, 4, 1, True, False, False, False
f32[3, 2, 3], f32[16, 3], f32[16, 4], f32[16, 3], f32[16, 4], f32[1, 2, 4], f32[1, 2, 4], True, [], 2, 4, 1, False, False, False, False
bf16[2, 1, 3], bf16[16, 3], bf16[16, 4], bf16[16], bf16[16], bf16[1, 1, 4], bf16[1, 1, 4], False, [], 2, 4, 1, True, False, True, False
)"},
    cellRow(
        "aten.mkldnn_rnn_layer_backward.default(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, int[] batch_sizes, bool batch_first, Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
        decomposeLibraryLayerBackward, {}),
    cellRow(
        "aten.lstm_cell.default(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
        decomposeLstmCell,
        "f32[2, 4], [f32[2, 3], f32[2, 3]], f32[12, 4], f32[12, 3], f32[12], f32[12]\nf64[2, 4], [f64[2, 3], f64[2, 3]], f64[12, 4], f64[12, 3]"),
    cellRow(
        "aten.gru_cell.default(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        decomposeGruCell,
        "f32[2, 4], f32[2, 3], f32[9, 4], f32[9, 3], f32[9], f32[9]\nf64[2, 4], f64[2, 3], f64[9, 4], f64[9, 3]"),
    cellRow(
        "aten.rnn_tanh_cell.default(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        decomposePlainCell<CellKind::Tanh>, "f32[2, 4], f32[2, 3], f32[3, 4], f32[3, 3], f32[3], f32[3]"),
    cellRow(
        "aten.rnn_relu_cell.default(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        decomposePlainCell<CellKind::Relu>, "f32[2, 4], f32[2, 3], f32[3, 4], f32[3, 3], f32[3], f32[3]"),
};

}  // namespace

std::span<const OpDef> recurrentOps() { return kRecurrentOps; }

}  // namespace cutaway
