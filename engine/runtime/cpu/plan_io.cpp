// Plans as bytes. Both ends are the same build on the same machine; a damaged message is an error, never a crash.
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/plan.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

enum class Mark : uint8_t { None, Value, Bool, Int, Real, Complex, Text, DType, Device, Layout, Format, List, Other };

void writeArgument(ByteWriter& out, const Argument& arg) {
    if (const Node* node = arg.node()) return out.pod(Mark::Value), out.text(node->name());
    if (const auto* v = arg.get<bool>()) return out.pod(Mark::Bool), out.pod(*v);
    if (const auto* v = arg.get<int64_t>()) return out.pod(Mark::Int), out.pod(*v);
    if (const auto* v = arg.get<double>()) return out.pod(Mark::Real), out.pod(*v);
    if (const auto* v = arg.get<std::complex<double>>()) return out.pod(Mark::Complex), out.pod(v->real()), out.pod(v->imag());
    if (const auto* v = arg.get<std::string>()) return out.pod(Mark::Text), out.text(*v);
    if (const auto* v = arg.get<DType>()) return out.pod(Mark::DType), out.pod(*v);
    if (const auto* v = arg.get<Device>()) return out.pod(Mark::Device), out.pod(*v);
    if (const auto* v = arg.get<Layout>()) return out.pod(Mark::Layout), out.pod(*v);
    if (const auto* v = arg.get<MemoryFormat>()) return out.pod(Mark::Format), out.pod(*v);
    if (const auto* list = arg.get<ArgumentList>()) {
        out.pod(Mark::List);
        out.pod(list->tuple);
        out.pod(static_cast<uint64_t>(list->items.size()));
        for (const Argument& item : list->items) writeArgument(out, item);
        return;
    }
    out.pod(arg.isNone() ? Mark::None : Mark::Other);
}

Argument readArgument(ByteReader& in, const Graph& names) {
    switch (in.pod<Mark>()) {
        case Mark::Value: return Argument(names.findByName(in.text()));
        case Mark::Bool: return in.pod<bool>();
        case Mark::Int: return in.pod<int64_t>();
        case Mark::Real: return in.pod<double>();
        case Mark::Complex: {
            const auto real = in.pod<double>(), imaginary = in.pod<double>();
            return std::complex<double>(real, imaginary);
        }
        case Mark::Text: return in.text();
        case Mark::DType: return in.pod<DType>();
        case Mark::Device: return in.pod<Device>();
        case Mark::Layout: return in.pod<Layout>();
        case Mark::Format: return in.pod<MemoryFormat>();
        case Mark::List: {
            ArgumentList list;
            list.tuple = in.pod<bool>();
            const size_t count = in.count();
            for (size_t i = 0; i < count && !in.failed(); ++i) list.items.push_back(readArgument(in, names));
            return list;
        }
        default: return {};
    }
}

void writeType(ByteWriter& out, const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) {
        out.pod(uint8_t{1});
        out.pod(tensor->dtype);
        out.dims(toInts(tensor->sizes));
        out.dims(toInts(tensor->strides));
        out.pod(tensor->offset.value());
    } else if (const TupleType* items = type.tuple()) {
        out.pod(uint8_t{2});
        out.pod(static_cast<uint64_t>(items->size()));
        for (const ValueType& item : *items) writeType(out, item);
    } else {
        out.pod(uint8_t{0});
    }
}

ValueType readType(ByteReader& in) {
    const auto mark = in.pod<uint8_t>();
    if (mark == 1) {
        TensorType type;
        type.dtype = in.pod<DType>();
        type.sizes = toSymDims(in.dims());
        type.strides = toSymDims(in.dims());
        type.offset = in.pod<int64_t>();
        return type;
    }
    if (mark == 2) {
        TupleType items;
        const size_t count = in.count();
        for (size_t i = 0; i < count && !in.failed(); ++i) items.push_back(readType(in));
        return items;
    }
    return {};
}

}  // namespace

std::string serialize(const Plan& plan) {
    ByteWriter out;
    out.pod(static_cast<uint64_t>(plan.values.size()));
    for (const PlanValue& value : plan.values) {
        out.pod(value.kind);
        out.pod(value.index);
        out.pod(value.offset);
        out.pod(value.dtype);
        out.dims(value.sizes);
        out.dims(value.strides);
        out.pod(value.constant);
    }
    out.pod(static_cast<uint64_t>(plan.names->size()));
    for (const Node& node : plan.names->nodes()) {
        out.text(node.name());
        writeType(out, node.type());
    }
    out.pod(static_cast<uint64_t>(plan.calls.size()));
    for (const PlanCall& call : plan.calls) {
        out.pod(call.kind);
        out.text(call.function);
        out.dims(call.buffers);
        out.dims(call.sizes);
        out.pod(call.range);
        out.pod(call.work);
        out.pod(static_cast<uint64_t>(call.args.size()));
        for (const Argument& arg : call.args) writeArgument(out, arg);
        writeType(out, call.type);
        out.dims(call.results);
    }
    out.dims(plan.outputs);
    out.pod(plan.arenaBytes);
    return std::move(out.bytes);
}

Result<Plan> deserializePlan(std::string_view bytes) {
    ByteReader in(bytes);
    Plan plan;
    const size_t values = in.count();
    for (size_t i = 0; i < values && !in.failed(); ++i) {
        PlanValue value;
        value.kind = in.pod<PlanValue::Kind>();
        value.index = in.pod<int64_t>();
        value.offset = in.pod<int64_t>();
        value.dtype = in.pod<DType>();
        value.sizes = in.dims();
        value.strides = in.dims();
        value.constant = in.pod<bool>();
        plan.values.push_back(std::move(value));
    }
    const size_t names = in.count();
    for (size_t i = 0; i < names && !in.failed(); ++i) {
        const std::string name = in.text();
        plan.names->placeholder(name, readType(in));
    }
    const size_t calls = in.count();
    for (size_t i = 0; i < calls && !in.failed(); ++i) {
        PlanCall call;
        call.kind = in.pod<CallKind>();
        call.function = in.text();
        call.buffers = in.dims();
        call.sizes = in.dims();
        call.range = in.pod<int64_t>();
        call.work = in.pod<int64_t>();
        const size_t args = in.count();
        for (size_t k = 0; k < args && !in.failed(); ++k) call.args.push_back(readArgument(in, *plan.names));
        call.type = readType(in);
        call.results = in.dims();
        plan.calls.push_back(std::move(call));
    }
    plan.outputs = in.dims();
    plan.arenaBytes = in.pod<int64_t>();
    if (in.failed()) return invalidInput("the execution plan is damaged");
    return plan;
}

void writeTensor(ByteWriter& out, const Tensor& tensor) {
    out.pod(tensor.defined());
    if (!tensor.defined()) return;
    out.pod(tensor.dtype());
    out.dims(tensor.sizes());
    out.dims(tensor.strides());
    int64_t extent = tensor.numel() == 0 ? 0 : 1;
    if (extent) for (size_t d = 0; d < tensor.sizes().size(); ++d) extent += (tensor.sizes()[d] - 1) * tensor.strides()[d];
    // Aligned to whole vectors, so that the reader can use the bytes where they lie.
    const auto size = static_cast<uint64_t>(extent * byteSize(tensor.dtype()));
    out.pod(size);
    out.bytes.append((64 - out.bytes.size() % 64) % 64, '\0');
    out.bytes.append(static_cast<const char*>(tensor.data()), size);
}

Tensor readTensor(ByteReader& in) {
    if (!in.pod<bool>()) return {};
    const DType dtype = in.pod<DType>();
    Dims sizes = in.dims(), strides = in.dims();
    const auto size = in.pod<uint64_t>();
    in.align(64);
    const std::string_view bytes = in.raw(size);
    // Own memory: kernels may write to inputs.
    const auto storage = Storage::allocateUninitialized(std::max<size_t>(bytes.size(), 64));
    std::memcpy(storage->data(), bytes.data(), bytes.size());
    return Tensor(storage, dtype, std::move(sizes), std::move(strides));
}

}  // namespace cutaway
