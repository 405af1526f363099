#pragma once
// Element types, devices, layouts and memory formats, with every name and code they have in the formats we read
// (spec: input-formats §1). Three numberings exist; never mix them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cutaway {

enum class DType : uint8_t {
    U8,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    C32,
    C64,
    C128,
    Bool,
    BF16,
    U16,
    U32,
    U64,
    F8E4M3FN,
    F8E5M2,
    F8E4M3FNUZ,
    F8E5M2FNUZ,
    F8E8M0FNU,
    F4E2M1FNX2,
    Bits16,
    Bits1x8,
};
constexpr int kDTypeCount = 24;

struct DTypeInfo {
    DType dtype;
    std::string_view abbreviation;  // in FX text: f32
    std::string_view torchName;     // without "torch.": float32
    int bytes;
    int exportCode;                 // in .pt2 JSON; 0 = none
    int c10Code;                    // in the ahead-of-time C ABI
    std::string_view storageClass;  // in torch.save: FloatStorage; empty = untyped only
    std::string_view safetensors;   // F32; empty = none
};

const DTypeInfo& info(DType dtype);
inline int byteSize(DType dtype) { return info(dtype).bytes; }
std::optional<DType> dtypeFromAbbreviation(std::string_view name);
std::optional<DType> dtypeFromTorchName(std::string_view name);  // "float32", "torch.float32", aliases "float", "long"
std::optional<DType> dtypeFromExportCode(int code);
std::optional<DType> dtypeFromSafetensors(std::string_view name);
std::optional<DType> dtypeFromStorageClass(std::string_view name);

bool isFloating(DType dtype);  // f16 bf16 f32 f64 and the 8- and 4-bit floats
bool isComplex(DType dtype);
bool isIntegral(DType dtype, bool includeBool = false);
bool isUnsigned(DType dtype);
/// Reduced-precision floats, which PyTorch computes in float32 and rounds back.
inline bool isHalf(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }
/// Result dtype of two tensor operands of the same category rank (c10::promoteTypes).
DType promote(DType a, DType b);

enum class DeviceType : uint8_t { Cpu, Cuda, Meta };
struct Device {
    DeviceType type = DeviceType::Cpu;
    int8_t index = -1;  // -1 = none given
    bool operator==(const Device&) const = default;
    std::string text() const;  // "cpu", "cuda:0"
};
std::optional<Device> deviceFromText(std::string_view text);

/// Values are the export codes.
enum class Layout : uint8_t {
    Unknown = 0,
    SparseCoo = 1,
    SparseCsr = 2,
    SparseCsc = 3,
    SparseBsr = 4,
    SparseBsc = 5,
    Mkldnn = 6,
    Strided = 7
};
enum class MemoryFormat : uint8_t { Unknown = 0, Contiguous = 1, ChannelsLast = 2, ChannelsLast3d = 3, Preserve = 4 };
std::string_view name(Layout layout);        // "strided"
std::string_view name(MemoryFormat format);  // "contiguous_format"
std::optional<Layout> layoutFromName(std::string_view text);
std::optional<MemoryFormat> memoryFormatFromName(std::string_view text);

}  // namespace cutaway
