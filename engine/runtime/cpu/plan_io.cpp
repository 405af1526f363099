// Plans as bytes.
#include "engine/runtime/cpu/plan.h"
#include "engine/runtime/wire.h"

namespace cutaway {

std::string serialize(const Plan& plan) {
    ByteWriter out;
    const NodeNumber number = [](const Node& node) { return index(node.id()); };
    out.count(plan.values.size());
    for (const PlanValue& value : plan.values) {
        out.pod(value.kind);
        out.pod(value.index);
        out.pod(value.offset);
        out.pod(value.dtype);
        out.dims(value.sizes);
        out.dims(value.strides);
        out.pod(value.constant);
        out.pod(value.written);
    }
    out.count(plan.names->size());
    for (const Node& node : plan.names->nodes()) {
        out.pod(plan.numberOf(node));
        writeType(out, node.type());
    }
    out.count(plan.calls.size());
    for (const PlanCall& call : plan.calls) {
        out.pod(call.kind);
        out.text(call.function);
        out.text(call.library);
        out.text(call.node);
        out.text(call.checking);
        out.dims(call.buffers);
        out.dims(call.sizes);
        out.count(call.launches.size());
        for (const PlanLaunch& launch : call.launches) {
            out.text(launch.library);
            out.text(launch.function);
            out.pod(launch.range);
        }
        out.pod(call.nanoseconds);
        out.count(call.args.size());
        for (const Argument& arg : call.args) writeArgument(out, arg, number);
        writeType(out, call.type);
        out.dims(call.results);
        out.count(call.ops.size());
        for (const std::string& op : call.ops) out.text(op);
    }
    out.dims(plan.outputs);
    out.pod(plan.arenaBytes);
    return std::move(out.bytes);
}

Result<Plan> deserializePlan(std::string_view bytes) {
    ByteReader in(bytes);
    Plan plan;
    in.each([&] {
        PlanValue value;
        value.kind = in.pod<PlanValue::Kind>();
        value.index = in.pod<int64_t>();
        value.offset = in.pod<int64_t>();
        value.dtype = in.pod<DType>();
        value.sizes = in.dims();
        value.strides = in.dims();
        value.constant = in.pod<bool>();
        value.written = in.pod<bool>();
        plan.values.push_back(std::move(value));
    });
    std::vector<Node*> names;
    in.each([&] {
        plan.numbers.push_back(in.pod<int64_t>());
        if (plan.numbers.back() < 0 || plan.numbers.back() >= static_cast<int64_t>(plan.values.size()))
            return in.fail();
        names.push_back(&plan.names->placeholder("v" + std::to_string(plan.numbers.back()), readType(in)));
    });
    const NodeAt nodeAt = [&](uint32_t number) { return number < names.size() ? names[number] : nullptr; };
    in.each([&] {
        PlanCall call;
        call.kind = in.pod<CallKind>();
        call.function = in.text();
        call.library = in.text();
        call.node = in.text();
        call.checking = in.text();
        call.buffers = in.dims();
        call.sizes = in.dims();
        in.each([&] {
            PlanLaunch& launch = call.launches.emplace_back();
            launch.library = in.text();
            launch.function = in.text();
            launch.range = in.pod<int64_t>();
        });
        call.nanoseconds = in.pod<int64_t>();
        in.each([&] { call.args.push_back(readArgument(in, nodeAt)); });
        call.type = readType(in);
        call.results = in.dims();
        in.each([&] { call.ops.emplace_back(in.text()); });
        plan.calls.push_back(std::move(call));
    });
    plan.outputs = in.dims();
    plan.arenaBytes = in.pod<int64_t>();
    if (in.failed()) return invalidInput("the execution plan is damaged");
    return plan;
}

}  // namespace cutaway
