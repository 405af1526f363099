#include "engine/tensor/dtype.h"

#include <array>

#include "engine/support/check.h"

namespace cutaway {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {DType::U8, "u8", "uint8", 1, 1, 0, "ByteStorage", "U8"},
    {DType::I8, "i8", "int8", 1, 2, 1, "CharStorage", "I8"},
    {DType::I16, "i16", "int16", 2, 3, 2, "ShortStorage", "I16"},
    {DType::I32, "i32", "int32", 4, 4, 3, "IntStorage", "I32"},
    {DType::I64, "i64", "int64", 8, 5, 4, "LongStorage", "I64"},
    {DType::F16, "f16", "float16", 2, 6, 5, "HalfStorage", "F16"},
    {DType::F32, "f32", "float32", 4, 7, 6, "FloatStorage", "F32"},
    {DType::F64, "f64", "float64", 8, 8, 7, "DoubleStorage", "F64"},
    {DType::C32, "c32", "complex32", 4, 9, 8, "", ""},
    {DType::C64, "c64", "complex64", 8, 10, 9, "ComplexFloatStorage", "C64"},
    {DType::C128, "c128", "complex128", 16, 11, 10, "ComplexDoubleStorage", ""},
    {DType::Bool, "b8", "bool", 1, 12, 11, "BoolStorage", "BOOL"},
    {DType::BF16, "bf16", "bfloat16", 2, 13, 15, "BFloat16Storage", "BF16"},
    {DType::U16, "u16", "uint16", 2, 28, 27, "", "U16"},
    {DType::U32, "u32", "uint32", 4, 34, 28, "", "U32"},
    {DType::U64, "u64", "uint64", 8, 35, 29, "", "U64"},
    {DType::F8E4M3FN, "f8e4m3fn", "float8_e4m3fn", 1, 29, 24, "", "F8_E4M3"},
    {DType::F8E5M2, "f8e5m2", "float8_e5m2", 1, 30, 23, "", "F8_E5M2"},
    {DType::F8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", 1, 31, 26, "", ""},
    {DType::F8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", 1, 32, 25, "", ""},
    {DType::F8E8M0FNU, "f8e8m0fnu", "float8_e8m0fnu", 1, 33, 44, "", "F8_E8M0"},
    {DType::F4E2M1FNX2, "f4e2m1fnx2", "float4_e2m1fn_x2", 1, 0, 45, "", "F4"},
    {DType::Bits16, "b16x1", "bits16", 2, 0, 22, "", ""},
    {DType::Bits1x8, "b1x8", "bits1x8", 1, 0, 18, "", ""},
}};

template <class Member, class Value>
std::optional<DType> findBy(Member member, const Value& value) {
    for (const DTypeInfo& row : kInfo)
        if (row.*member == value) return row.dtype;
    return std::nullopt;
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<size_t>(dtype)]; }
std::optional<DType> dtypeFromAbbreviation(std::string_view text) {
    if (text == "b16") return DType::Bits16;  // before PyTorch 2.15
    return findBy(&DTypeInfo::abbreviation, text);
}
std::optional<DType> dtypeFromTorchName(std::string_view text) {
    if (text.starts_with("torch.")) text.remove_prefix(6);
    if (text == "float") return DType::F32;
    if (text == "double") return DType::F64;
    if (text == "half") return DType::F16;
    if (text == "long") return DType::I64;
    if (text == "int") return DType::I32;
    if (text == "short") return DType::I16;
    return findBy(&DTypeInfo::torchName, text);
}
std::optional<DType> dtypeFromExportCode(int code) {
    return code == 0 ? std::nullopt : findBy(&DTypeInfo::exportCode, code);
}
std::optional<DType> dtypeFromSafetensors(std::string_view text) {
    return text.empty() ? std::nullopt : findBy(&DTypeInfo::safetensors, text);
}
std::optional<DType> dtypeFromStorageClass(std::string_view text) {
    return text.empty() ? std::nullopt : findBy(&DTypeInfo::storageClass, text);
}

bool isFloating(DType dtype) {
    switch (dtype) {
        case DType::F16:
        case DType::BF16:
        case DType::F32:
        case DType::F64:
        case DType::F8E4M3FN:
        case DType::F8E5M2:
        case DType::F8E4M3FNUZ:
        case DType::F8E5M2FNUZ:
        case DType::F8E8M0FNU:
        case DType::F4E2M1FNX2: return true;
        default: return false;
    }
}
bool isComplex(DType dtype) { return dtype == DType::C32 || dtype == DType::C64 || dtype == DType::C128; }
bool isIntegral(DType dtype, bool includeBool) {
    switch (dtype) {
        case DType::U8:
        case DType::I8:
        case DType::I16:
        case DType::I32:
        case DType::I64:
        case DType::U16:
        case DType::U32:
        case DType::U64: return true;
        case DType::Bool: return includeBool;
        default: return false;
    }
}
bool isUnsigned(DType dtype) {
    return dtype == DType::U8 || dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64;
}

namespace {
/// Whether PyTorch refuses to promote the dtype and another: those of 8 bits with a point always, the wider unsigned
/// ones unless the other has a point.
bool standsAlone(DType dtype, DType other) {
    if (isFloating(dtype)) return byteSize(dtype) == 1;
    const bool wideUnsigned = dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64;
    return wideUnsigned && !isFloating(other);
}
}  // namespace

DType promote(DType a, DType b) {
    if (a == b) return a;
    if (standsAlone(a, b) || standsAlone(b, a))
        throw SizeError(std::string(info(a).abbreviation) + " and " + std::string(info(b).abbreviation) +
                        " have no common dtype, as in PyTorch; convert one of them");
    if (a == DType::Bool) return b;
    if (b == DType::Bool) return a;
    auto category = [](DType d) { return isComplex(d) ? 2 : isFloating(d) ? 1 : 0; };
    if (category(a) != category(b)) {
        const DType hi = category(a) > category(b) ? a : b, lo = category(a) > category(b) ? b : a;
        if (isComplex(hi) && isFloating(lo)) {  // the complex type must be able to hold the real one
            if (lo == DType::F64) return DType::C128;
            if (lo == DType::F32 || lo == DType::BF16) return hi == DType::C128 ? hi : DType::C64;
        }
        return hi;
    }
    if (isComplex(a)) return byteSize(a) > byteSize(b) ? a : b;
    if (isFloating(a)) {
        if (byteSize(a) != byteSize(b)) return byteSize(a) > byteSize(b) ? a : b;
        return DType::F32;  // f16 with bf16
    }
    // Integers: signed ones by width; i8 and u8 need the next wider one.
    if (byteSize(a) == byteSize(b)) return DType::I16;
    return byteSize(a) > byteSize(b) ? a : b;
}

std::string Device::text() const {
    std::string name = type == DeviceType::Cpu ? "cpu" : type == DeviceType::Cuda ? "cuda" : "meta";
    if (index >= 0) name += ":" + std::to_string(index);
    return name;
}
std::optional<Device> deviceFromText(std::string_view text) {
    const auto colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    Device device;
    if (kind == "cpu") device.type = DeviceType::Cpu;
    else if (kind == "cuda") device.type = DeviceType::Cuda;
    else if (kind == "meta") device.type = DeviceType::Meta;
    else return std::nullopt;
    if (colon != std::string_view::npos) {
        int index = 0;
        const std::string_view digits = text.substr(colon + 1);
        if (digits.empty() || digits.size() > 2) return std::nullopt;
        for (char c : digits) {
            if (c < '0' || c > '9') return std::nullopt;
            index = index * 10 + (c - '0');
        }
        device.index = static_cast<int8_t>(index);
    }
    return device;
}

namespace {
constexpr std::array<std::string_view, 8> kLayoutNames = {"unknown",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                          "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
constexpr std::array<std::string_view, 5> kFormatNames = {"unknown", "contiguous_format", "channels_last",
                                                          "channels_last_3d", "preserve_format"};
}  // namespace
std::string_view name(Layout layout) { return kLayoutNames[static_cast<size_t>(layout)]; }
std::string_view name(MemoryFormat format) { return kFormatNames[static_cast<size_t>(format)]; }
std::optional<Layout> layoutFromName(std::string_view text) {
    for (size_t i = 0; i < kLayoutNames.size(); ++i)
        if (kLayoutNames[i] == text) return static_cast<Layout>(i);
    return std::nullopt;
}
std::optional<MemoryFormat> memoryFormatFromName(std::string_view text) {
    for (size_t i = 0; i < kFormatNames.size(); ++i)
        if (kFormatNames[i] == text) return static_cast<MemoryFormat>(i);
    return std::nullopt;
}

}  // namespace cutaway
