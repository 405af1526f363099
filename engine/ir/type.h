#pragma once
// What a value in a graph is: a tensor's metadata, a symbolic number, a tuple of such, or something we only carry.
#include <string>
#include <variant>
#include <vector>

#include "engine/expr/expr.h"
#include "engine/tensor/dtype.h"

namespace cutaway {

struct TensorType {
    DType dtype = DType::F32;
    Device device;
    SymDims sizes;
    SymDims strides;    // elements; one per size
    SymInt offset = 0;  // elements into the storage
    Layout layout = Layout::Strided;
    bool requiresGrad = false;
    bool assumed = false;  // strides were not written and are taken to be row-major (TXT-6)

    /// Row-major.
    static TensorType contiguous(DType dtype, SymDims sizes, Device device = {});
    int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
    bool isContiguous() const;
    /// Same dtype, device, sizes and strides (what makes a copy superfluous); offset and grad flag do not count.
    bool sameMeta(const TensorType& other) const;
    /// "f32[8, 16]", with "[16, 1]" when strides are not row-major and the device when it is not the CPU.
    std::string text() const;
    /// Always with strides and device, as PyTorch's logs print it.
    std::string fullText() const;
};

/// A number known only at run time: integer, float or bool by dtype (I64, F64, Bool).
struct SymType {
    DType dtype = DType::I64;
    Expr expr;
};
/// Carried, not understood: a script object, a token, the result of an unknown op.
struct OpaqueType {
    std::string description;  // may be empty
};
struct ValueType;
using TupleType = std::vector<ValueType>;

struct ValueType {
    std::variant<std::monostate, TensorType, SymType, OpaqueType, TupleType> kind;

    ValueType() = default;
    ValueType(TensorType type) : kind(std::move(type)) {}
    ValueType(SymType type) : kind(std::move(type)) {}
    ValueType(OpaqueType type) : kind(std::move(type)) {}
    ValueType(TupleType type) : kind(std::move(type)) {}

    const TensorType* tensor() const { return std::get_if<TensorType>(&kind); }
    TensorType* tensor() { return std::get_if<TensorType>(&kind); }
    const SymType* sym() const { return std::get_if<SymType>(&kind); }
    const TupleType* tuple() const { return std::get_if<TupleType>(&kind); }
    bool isNone() const { return kind.index() == 0; }
    bool isOpaque() const { return std::holds_alternative<OpaqueType>(kind); }
    /// The quoted annotation of FX text; empty for tuples, None and opaque values.
    std::string text() const;
};

/// True if no part of it is opaque: kernels, expansions and derivatives may read what it says.
bool isKnown(const ValueType& type);
/// Equal dtype, device, sizes, strides, recursively; the comparison that inference is held to.
bool sameType(const ValueType& a, const ValueType& b);

}  // namespace cutaway
