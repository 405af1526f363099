#include "engine/ir/type.h"

#include "engine/expr/polynomial.h"

namespace cutaway {

TensorType TensorType::contiguous(DType dtype, SymDims sizes, Device device) {
    TensorType type;
    type.dtype = dtype;
    type.device = device;
    type.strides = contiguousStrides(sizes);
    type.sizes = std::move(sizes);
    return type;
}

bool TensorType::isContiguous() const {
    SymInt step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        if (sizes[i] == SymInt(0)) return true;
        if (!(sizes[i] == SymInt(1)) && !(strides[i] == step) &&
            !(strideOfElements(strides[i]) == strideOfElements(step)))
            return false;
        step = step * sizes[i];
    }
    return true;
}

bool TensorType::sameMeta(const TensorType& other) const {
    return dtype == other.dtype && device == other.device && layout == other.layout && sizes == other.sizes &&
           strides == other.strides;
}

namespace {
std::string list(const SymDims& dims) {
    std::string out = "[";
    for (size_t i = 0; i < dims.size(); ++i) {
        if (i > 0) out += ", ";
        out += dims[i].text();
    }
    return out + "]";
}
}  // namespace

std::string TensorType::text() const {
    std::string out = std::string(info(dtype).abbreviation) + list(sizes);
    if (strides != contiguousStrides(sizes)) out += list(strides);
    if (device.type != DeviceType::Cpu || device.index >= 0) out += device.text();
    return out;
}
std::string TensorType::fullText() const {
    return std::string(info(dtype).abbreviation) + list(sizes) + list(strides) + device.text();
}

std::string ValueType::text() const {
    if (const TensorType* type = tensor()) return type->text();
    if (const SymType* type = sym()) return "Sym(" + cutaway::text(type->expr) + ")";
    // Tensors of a dtype that has no elements here are shown as they were written.
    const auto* opaque = std::get_if<OpaqueType>(&kind);
    return opaque && opaque->description.ends_with(']') ? opaque->description : std::string();
}

bool isKnown(const ValueType& type) {
    const TupleType* tuple = type.tuple();
    return tuple ? std::all_of(tuple->begin(), tuple->end(), isKnown) : !type.isOpaque();
}

bool sameType(const ValueType& a, const ValueType& b) {
    if (a.kind.index() != b.kind.index()) return false;
    if (const TensorType* type = a.tensor()) return type->sameMeta(*b.tensor());
    if (const SymType* type = a.sym()) return type->dtype == b.sym()->dtype && type->expr == b.sym()->expr;
    if (const TupleType* tuple = a.tuple()) {
        const TupleType& other = *b.tuple();
        if (tuple->size() != other.size()) return false;
        for (size_t i = 0; i < tuple->size(); ++i)
            if (!sameType((*tuple)[i], other[i])) return false;
    }
    return true;
}

}  // namespace cutaway
