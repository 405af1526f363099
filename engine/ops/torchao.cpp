// torchao's operators: numbers that are quantized in blocks, of integers and of 8-bit floats.
#include <limits>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// A tensor's sizes cut into blocks: [.., blocks, block, ..] where a block is a part of a dim.
struct Blocks {
    SymDims cut, kept;           // `kept`: the same with 1 in place of what shares a scale
    std::vector<int64_t> inner;  // the dims of `cut` that share a scale
    SymDims counts;              // of blocks, per dim of the tensor
};
std::optional<Blocks> blocksOfTensor(Decomposition& d, const Value& x) {
    const auto block = read(d, d.sizes("block_size"));
    if (!block) return std::nullopt;
    if (block->size() != x.sizes().size()) {
        refuse(d, "needs a block size for each dim of " + x.type().text() + ", not " + std::to_string(block->size()));
        return std::nullopt;
    }
    Blocks blocks;
    const auto add = [&](const SymInt& size, bool shared) {
        if (shared) blocks.inner.push_back(static_cast<int64_t>(blocks.cut.size()));
        blocks.cut.push_back(size);
        blocks.kept.push_back(shared ? SymInt(1) : size);
    };
    for (size_t i = 0; i < block->size(); ++i) {
        const SymInt &size = x.sizes()[i], &length = (*block)[i];
        const bool whole = length == size, part = !whole && !(length == SymInt(1));
        if (part && length.isInt() && length.value() < 1) {
            refuse(d, "a block has no " + length.text() + " elements");
            return std::nullopt;
        }
        if (part && leavesRemainder(size, length)) {
            refuse(d, "dim " + std::to_string(i) + " of size " + size.text() + " is not a multiple of its block, " +
                          length.text());
            return std::nullopt;
        }
        if (part) add(floorDiv(size, length), false);
        add(part ? length : size, !(length == SymInt(1)));
        blocks.counts.push_back(whole ? SymInt(1) : floorDiv(size, length));
    }
    return blocks;
}

struct Limits {
    double low = 0, high = 0;
    bool whole = true;
};
/// The numbers of a dtype, also of integers of 1 to 7 bits.
std::optional<Limits> limitsOf(DType dtype) {
    switch (dtype) {
        case DType::I16: return Limits{-32768, 32767};
        case DType::I32: return Limits{-2147483648.0, 2147483647.0};
        case DType::F8E4M3FN: return Limits{-448, 448, false};
        case DType::F8E5M2:
        case DType::F8E5M2FNUZ: return Limits{-57344, 57344, false};
        case DType::F8E4M3FNUZ: return Limits{-240, 240, false};
        default: break;
    }
    const std::string_view name = info(dtype).torchName;
    const bool isSigned = name.starts_with("int");
    const std::string_view bits = name.substr(std::min(name.size(), size_t{isSigned ? 3U : 4U}));
    if (!(isSigned || name.starts_with("uint")) || bits.size() != 1 || bits[0] < '1' || bits[0] > '8')
        return std::nullopt;
    const double range = static_cast<double>(1 << (bits[0] - '0'));
    return isSigned ? Limits{-range / 2, range / 2 - 1} : Limits{0, range - 1};
}
/// The dtype's limits, or narrower ones that the call gives.
std::optional<Limits> limitsOfCall(Decomposition& d, std::optional<DType> dtype) {
    auto limits = dtype ? limitsOf(*dtype) : std::nullopt;
    if (!limits) {
        refuse(d, "has no limits for " + (dtype ? std::string(info(*dtype).torchName) : "what is not a dtype") +
                      ": it takes integers of 1 to 8 bits, int16, int32 and 8-bit floats");
        return std::nullopt;
    }
    const Limits all = *limits;
    for (const auto& [param, limit] : {std::pair("quant_min", &limits->low), std::pair("quant_max", &limits->high)})
        if (const auto given = d.scalar(param)) {
            *limit = toDouble(*given);
            if (!std::holds_alternative<int64_t>(*given)) limits->whole = false;
        }
    if (limits->low >= all.low && limits->high <= all.high) return limits;
    refuse(d, "quant_min and quant_max must be numbers of " + std::string(info(*dtype).torchName));
    return std::nullopt;
}
OperandValue limitNumber(const Limits& limits, double value) {
    return limits.whole ? OperandValue(static_cast<int64_t>(value)) : OperandValue(value);
}
Value clampTo(Decomposition& d, const Value& x, const Limits& limits) {
    return d.call("aten.clamp.default",
                  {x, limitNumber(limits, limits.low).argument(), limitNumber(limits, limits.high).argument()});
}
bool isQuantizable(DType dtype) { return dtype == DType::F32 || isHalf(dtype); }
/// What the numbers of a dtype are kept in: unsigned integers of less than 8 bits in bytes.
DType storageOf(DType dtype) {
    const std::string_view name = info(dtype).torchName;
    return name.starts_with("uint") && name.size() == 5 ? DType::U8 : dtype;
}

/// Scales and zero points by the blocks' least and greatest numbers.
Values chooseAffine(Decomposition& d) {
    const Value none(d.builder(), nullptr);
    if (!d.has("input")) return refuse(d, "needs a tensor");
    const Value input = d.in("input");
    const std::string mapping = d.text("mapping_type");
    const bool symmetric = mapping == "SYMMETRIC", unclipped = mapping == "SYMMETRIC_NO_CLIPPING_ERR";
    if (!symmetric && !unclipped && mapping != "ASYMMETRIC")
        return refuse(d, "mapping_type is SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR or ASYMMETRIC, not '" + mapping + "'");
    if (!isFloating(input.dtype()) || byteSize(input.dtype()) < 2) return refuse(d, "needs a floating-point tensor");
    const auto limits = limitsOfCall(d, d.dtype("target_dtype"));
    if (!limits) return none;
    const auto blocks = blocksOfTensor(d, input);
    if (!blocks) return none;
    constexpr double kLeastF16 = 6.103515625e-05;  // smallest normal numbers
    const double normal = input.dtype() == DType::F16   ? kLeastF16
                          : input.dtype() == DType::F64 ? std::numeric_limits<double>::min()
                                                        : static_cast<double>(std::numeric_limits<float>::min());
    const double eps = d.has("eps") ? d.real("eps") : normal;
    const bool keepDim = d.flag("keepdim");
    const Value cut = reshape(input, blocks->cut);
    const auto extreme = [&](const char* op) { return d.call(op, {cut, Argument(blocks->inner), keepDim}); };
    const auto withZero = [&](const char* op, const Value& x) {
        return d.call(op, {x, d.call("aten.zeros_like.default", {x})});
    };
    const Value least = extreme("aten.amin.default"), most = extreme("aten.amax.default"),
                from = withZero("aten.minimum.default", least), to = withZero("aten.maximum.default", most);
    Value scale, zero;
    if (symmetric) {
        scale = d.call("aten.maximum.default", {-from, to}) / ((limits->high - limits->low) / 2);
    } else if (unclipped) {
        const Value below = from / limits->low, above = to / limits->high;
        scale = where(d.call("aten.gt.Tensor", {below, above}), below, above);
    } else {
        scale = (to - from) / (limits->high - limits->low);
    }
    if (symmetric || unclipped)
        zero = d.call("aten.full_like.default", {scale, static_cast<int64_t>((limits->high + limits->low + 1) / 2)});
    scale = d.call("aten.clamp.default", {scale, eps});
    if (!symmetric && !unclipped) {
        const Value steps = unary("aten.round.default", from / scale);
        zero = clampTo(d, d.call("aten.rsub.Scalar", {steps, limitNumber(*limits, limits->low).argument()}), *limits);
    }
    if (keepDim) {
        scale = reshape(scale, blocks->counts);
        zero = reshape(zero, blocks->counts);
    }
    const DType zeroType = d.dtype("zero_point_dtype").value_or(symmetric || unclipped ? input.dtype() : DType::I32);
    return {convert(scale, d.dtype("scale_dtype").value_or(input.dtype())), convert(zero, zeroType)};
}
/// round(input / scale) + zero point, within the limits.
Values quantizeAffine(Decomposition& d) {
    const Value none(d.builder(), nullptr), input = d.in(size_t{0});
    if (!isQuantizable(input.dtype())) return refuse(d, "quantizes float32, float16 and bfloat16");
    if (!d.has("zero_point") || numel(d.in("zero_point").sizes()) == SymInt(0))
        return refuse(d, "needs a zero point");  // one without elements is none for torchao
    const auto limits = limitsOfCall(d, d.dtype("output_dtype"));
    if (!limits) return none;
    const DType dtype = *d.dtype("output_dtype"), kept = storageOf(dtype);
    if (kept != DType::U8 && kept != DType::I8 && !isFloating(kept) && byteSize(kept) < 2)
        return refuse(d, "cannot keep " + std::string(info(dtype).torchName) +
                             ", which PyTorch does not compute either; use int8 with quant_min and quant_max");
    const auto blocks = blocksOfTensor(d, input);
    if (!blocks) return none;
    const Value cut = reshape(input, blocks->cut), scale = reshape(d.in("scale"), blocks->kept),
                zero = reshape(d.in("zero_point"), blocks->kept);
    const Value inverse = unary("aten.reciprocal.default", scale) * 1.0;
    const Value steps = unary("aten.round.default", cut * inverse) + zero;
    return convert(reshape(clampTo(d, steps, *limits), input.sizes()), kept);
}
/// (input - zero point) * scale
Values dequantizeAffine(Decomposition& d) {
    const Value none(d.builder(), nullptr), input = d.in(size_t{0});
    if (!limitsOfCall(d, d.dtype("input_dtype"))) return none;
    const DType given = *d.dtype("input_dtype"), out = d.dtype("output_dtype").value_or(DType::F32);
    if (input.dtype() != given && storageOf(given) == given)
        return refuse(d, "expects " + std::string(info(given).torchName) + ", not " + input.type().text());
    if (!isQuantizable(out)) return refuse(d, "gives float32, float16 and bfloat16");
    const auto blocks = blocksOfTensor(d, input);
    if (!blocks) return none;
    const Value cut = reshape(input, blocks->cut), scale = reshape(d.in("scale"), blocks->kept);
    const Value zero = d.has("zero_point") ? reshape(d.in("zero_point"), blocks->kept) : Value();
    Value x = convert(cut, out);
    if (zero) x = x - convert(zero, out);
    return convert(reshape(x * scale, input.sizes()), out);
}

// -- 8-bit floats

Values chooseScaleFloat8(Decomposition& d) {
    const Value none(d.builder(), nullptr), input = d.in(size_t{0});
    const auto limits = limitsOf(d.dtype("float8_dtype").value_or(DType::F8E4M3FN));
    if (!limits || limits->whole || (isFloating(input.dtype()) && byteSize(input.dtype()) < 2) ||
        isComplex(input.dtype()) || input.dtype() == DType::Bool)
        return refuse(d, "chooses scales of numbers for an 8-bit float");
    const auto blocks = blocksOfTensor(d, input);
    if (!blocks) return none;
    Value most = d.call("aten.amax.default",
                        {unary("aten.abs.default", reshape(input, blocks->cut)), Argument(blocks->inner), true});
    if (d.has("hp_value_lb") || d.has("hp_value_ub"))
        most = d.call("aten.clamp.default", {most, d.arg("hp_value_lb"), d.arg("hp_value_ub")});
    Value scale = reshape(most / limits->high, blocks->counts);
    const DType kind = d.dtype("scale_dtype").value_or(DType::F32);
    if (kind != DType::F32 && kind != DType::F8E8M0FNU)
        return refuse(d, "gives scales of float32, or powers of two as float8_e8m0fnu has them");
    if (kind != DType::F32)
        scale = unary("aten.exp2.default", unary("aten.round.default", unary("aten.log2.default", scale)));
    return convert(scale, DType::F32);
}
/// The scale of each element: one for all, what broadcasts, or one per block.
Value scaleOfElements(Decomposition& d, const Value& scale, const SymDims& sizes) {
    if (scale.rank() == 0 || numel(scale.sizes()) == SymInt(1) || scale.sizes() == sizes) return scale;
    if (scale.sizes().size() != sizes.size()) {
        refuse(d, "needs one scale, or scales of as many dims as the tensor, not " + scale.type().text());
        return Value(d.builder(), nullptr);
    }
    Value spread = scale;
    for (size_t i = 0; i < sizes.size(); ++i) {
        const SymInt count = scale.sizes()[i];
        if (count == SymInt(1) || count == sizes[i]) continue;
        if (count == SymInt(0) || leavesRemainder(sizes[i], count)) {
            refuse(d, "dim " + std::to_string(i) + " of size " + sizes[i].text() + " does not hold " + count.text() +
                          " blocks");
            return Value(d.builder(), nullptr);
        }
        SymDims wide = spread.sizes(), joined = spread.sizes();
        wide.insert(wide.begin() + static_cast<int64_t>(i) + 1, floorDiv(sizes[i], count));
        joined[i] = sizes[i];
        spread = reshape(expand(unsqueeze(spread, static_cast<int64_t>(i) + 1), wide), joined);
    }
    return spread;
}
Values quantizeFloat8(Decomposition& d) {
    const Value x = convert(d.in(size_t{0}), DType::F32);
    const DType dtype = d.dtype("float8_dtype").value_or(DType::F8E4M3FN);
    const auto limits = limitsOf(dtype);
    if (!limits || !isFloating(dtype)) return refuse(d, "quantizes to 8-bit floats");
    const Value scaled = x / scaleOfElements(d, d.in("scale"), x.sizes());
    return convert(d.call("aten.clamp.default", {scaled, limits->low, limits->high}), dtype);
}
Values dequantizeFloat8(Decomposition& d) {
    const Value x = convert(d.in(size_t{0}), DType::F32);
    return convert(x * scaleOfElements(d, d.in("scale"), x.sizes()), d.dtype("output_dtype").value_or(DType::F32));
}

// -- integer products

Values intProduct(Decomposition& d) { return d.call("aten._int_mm.default", {d.in(size_t{0}), d.in(1)}); }
Values scaledIntProduct(Decomposition& d) {
    const Value scale = d.in(2);
    return convert(d.call("aten._int_mm.default", {d.in(size_t{0}), d.in(1)}), scale.dtype()) * scale;
}

/// torchao differentiates these by itself, where it trains with them.
constexpr OpDef noGradients(std::string_view schema, Fn<Values(Decomposition&)> rule, std::string_view samples) {
    return shorthand(schema, rule, samples, Tag::NoGradient);
}

constexpr OpDef kTorchaoOps[] = {
    shorthand(
        "torchao.choose_qparams_affine.default(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, "
        "float? eps=None, ScalarType? scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
        chooseAffine,
        "f32[4, 8], 'SYMMETRIC', [1, 4], torch.int8, -8, 7\nf16[4, 8], 'SYMMETRIC_NO_CLIPPING_ERR', [1, 4], torch.int8\nbf16[4, 8], 'ASYMMETRIC', [2, 1], torch.uint8, None, None, 0.01, torch.float32, torch.int64, True"),
    noGradients(
        "torchao.quantize_affine.default(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType output_dtype, Scalar? quant_min=None, "
        "Scalar? quant_max=None) -> Tensor",
        quantizeAffine,
        "f32[4, 8], [1, 4], f32[4, 2]>0, i32[4, 2]<4, torch.int8, -8, 7\nbf16[4, 8], [4, 8], f32[]>0, i64[]<4, torch.uint8"),
    shorthand(
        "torchao.dequantize_affine.default(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, Scalar? quant_min=None, "
        "Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor",
        dequantizeAffine,
        "i8[4, 8], [1, 4], f32[4, 2]>0, i32[4, 2]<4, torch.int8, -8, 7\nu8[4, 8], [1, 8], f32[4, 1]>0, None, torch.uint8, None, None, torch.bfloat16"),
    shorthand(
        "torchao.choose_scale_float8.default(Tensor tensor, SymInt[] block_size, ScalarType float8_dtype=24, ScalarType scale_dtype=6, float? hp_value_lb=None, "
        "float? hp_value_ub=None) -> Tensor",
        chooseScaleFloat8, "f32[4, 8], [1, 4]\nbf16[4, 8], [4, 8], torch.float8_e5m2, torch.float32, 0.1, 5.0"),
    noGradients(
        "torchao.quantize_affine_float8_non_decomposed.default(Tensor tensor, Tensor scale, ScalarType float8_dtype=24) -> Tensor",
        quantizeFloat8, "f32[4, 8], f32[4, 2]>0\nbf16[4, 8], f32[]>0, torch.float8_e5m2"),
    noGradients(
        "torchao.dequantize_affine_float8_non_decomposed.default(Tensor tensor, Tensor scale, ScalarType output_dtype=6) -> Tensor",
        dequantizeFloat8, "f8e4m3fn[4, 8], f32[4, 2]>0\nf8e5m2[4, 8], f32[]>0, torch.bfloat16"),
    noGradients("torchao.int_matmul.default(Tensor a, Tensor b) -> Tensor", intProduct, "i8[17, 8], i8[8, 8]"),
    noGradients("torchao.int_scaled_matmul.default(Tensor a, Tensor b, Tensor scales1) -> Tensor", scaledIntProduct,
                "i8[17, 8], i8[8, 8], f32[17, 1]>0\ni8[17, 8], i8[8, 8], bf16[1, 1]>0"),
};

}  // namespace

std::span<const OpDef> torchaoOps() { return kTorchaoOps; }

}  // namespace cutaway
