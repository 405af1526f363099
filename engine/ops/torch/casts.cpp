// Conversions: x.to(...), x.float(), x.cpu(), x.type(...).
#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

/// All spellings of Tensor.to at once: a dtype, a device, another tensor, in any order that Python takes.
Argument to(PythonCall& c) {
    std::optional<DType> dtype;
    std::optional<Device> device;
    NamedArguments keywords;
    const auto read = [&](const Argument& value, size_t position) -> bool {
        if (const auto* found = value.get<DType>()) {
            dtype = *found;
            return true;
        }
        if (const auto* found = value.get<Device>()) {
            device = *found;
            return true;
        }
        if (const auto* text = value.get<std::string>()) {
            device = deviceFromText(*text);
            return device.has_value();
        }
        if (const auto* format = value.get<MemoryFormat>()) {
            keywords.emplace_back("memory_format", Argument(*format));
            return true;
        }
        if (const TensorType* other = tensorOf(value)) {
            dtype = other->dtype;
            device = other->device;
            return true;
        }
        if (value.isNone()) return true;
        if (const auto* flag = value.get<bool>()) {
            keywords.emplace_back(position == 1 || position == 2 ? "non_blocking" : "copy", Argument(*flag));
            return true;
        }
        return false;
    };
    if (const auto* all = c["args"].list())
        for (size_t i = 0; i < all->size(); ++i)
            if (!read((*all)[i], i)) return c.fail("an argument that is neither dtype, device nor tensor");
    if (!read(c["dtype"], 0) || !read(c["device"], 0) || !read(c["other"], 0) || !read(c["memory_format"], 0))
        return c.fail("an argument that is neither dtype, device nor tensor");
    if (c.flag("copy")) keywords.emplace_back("copy", Argument(true));
    const TensorType type = c.tensor("self");
    const bool moves = device && !(*device == type.device ||
                                   (device->type == type.device.type && (device->index < 0 || type.device.index < 0)));
    if (device && !dtype && keywords.empty()) return c.aten("to", {c["self"]}, {{"device", Argument(*device)}});
    if (moves) return c.aten("to", {c["self"], Argument(*device), Argument(dtype.value_or(type.dtype))}, keywords);
    if (dtype || !keywords.empty()) return c.aten("to", {c["self"], Argument(dtype.value_or(type.dtype))}, keywords);
    return c["self"];
}

Argument cast(PythonCall& c, DType dtype) { return c.aten("to", {c["self"], Argument(dtype)}); }

Argument onDevice(PythonCall& c, Device device) {
    const TensorType type = c.tensor("self");
    if (type.device.type == device.type) return c["self"];
    return c.aten("to", {c["self"], Argument(device), Argument(type.dtype)});
}

Argument typed(PythonCall& c) {
    if (const auto* dtype = c["dtype"].get<DType>()) return cast(c, *dtype);
    return c.fail("a type given as text", {"use x.to(dtype)"});
}

constexpr PythonFunction kCastsFunctions[] = {
    {"Tensor.to(Any self, Any[] args=[], *, Any dtype=None, Any device=None, Any other=None, bool non_blocking=False, bool copy=False, "
     "Any memory_format=None) -> Any",
     to},
    {"Tensor.type(Any self, Any dtype) -> Any", typed},
    {"Tensor.float(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::F32); }},
    {"Tensor.double(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::F64); }},
    {"Tensor.half(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::F16); }},
    {"Tensor.bfloat16(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::BF16); }},
    {"Tensor.long(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::I64); }},
    {"Tensor.int(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::I32); }},
    {"Tensor.short(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::I16); }},
    {"Tensor.char(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::I8); }},
    {"Tensor.byte(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::U8); }},
    {"Tensor.bool(Any self) -> Any", [](PythonCall& c) { return cast(c, DType::Bool); }},
    {"Tensor.cpu(Any self) -> Any", [](PythonCall& c) { return onDevice(c, Device{}); }},
    {"Tensor.cuda(Any self, Any device=None) -> Any",
     [](PythonCall& c) {
         return onDevice(c, Device{DeviceType::Cuda, 0});
     }},
};

}  // namespace

std::span<const PythonFunction> castFunctions() { return kCastsFunctions; }

}  // namespace cutaway::torchcalls
