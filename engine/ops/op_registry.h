#pragma once
// All operators: the rows of the family tables, the in-place twins made from them, and opaque ones as they are met.
#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/op.h"

namespace cutaway {

/// Null when there is no row (and no in-place twin) of that full name, e.g. "aten.mul.Tensor".
const Op* findOp(std::string_view fullName);
/// The op of a name that must have a row; throws InternalError where there is none.
const Op& requireOp(std::string_view fullName);
/// The op of that name, or an opaque one registered on first use. Thread-safe; addresses stay valid.
const Op& findOrMakeOpaque(std::string_view fullName, Op::Style style = Op::Style::Function);
/// Every op with a row, in table order, in-place twins after them.
std::span<const Op* const> allOps();

// The family tables, one per file of this folder.
std::span<const OpDef> pointwiseOps();
std::span<const OpDef> pointwiseUnaryOps();
std::span<const OpDef> pointwiseSpecialOps();
std::span<const OpDef> compareOps();
std::span<const OpDef> castOps();
std::span<const OpDef> activationOps();
std::span<const OpDef> activationBackwardOps();
std::span<const OpDef> createOps();
std::span<const OpDef> viewOps();
std::span<const OpDef> permuteOps();
std::span<const OpDef> sliceOps();
std::span<const OpDef> viewScatterOps();
std::span<const OpDef> movementOps();
std::span<const OpDef> padOps();
std::span<const OpDef> joinOps();
std::span<const OpDef> rearrangeOps();
std::span<const OpDef> repeatOps();
std::span<const OpDef> rangeOps();
std::span<const OpDef> reinterpretOps();
std::span<const OpDef> reduceOps();
std::span<const OpDef> reduceCompositeOps();
std::span<const OpDef> extremeOps();
std::span<const OpDef> scanOps();
std::span<const OpDef> sortOps();
std::span<const OpDef> softmaxOps();
std::span<const OpDef> normOps();
std::span<const OpDef> normBackwardOps();
std::span<const OpDef> groupNormOps();
std::span<const OpDef> rmsNormOps();
std::span<const OpDef> lossOps();
std::span<const OpDef> classLossOps();
std::span<const OpDef> lossCompositeOps();
std::span<const OpDef> gemmOps();
std::span<const OpDef> gemmCompositeOps();
std::span<const OpDef> gemmShorthandOps();
std::span<const OpDef> mkldnnLinearOps();
std::span<const OpDef> mkldnnConvOps();
std::span<const OpDef> einsumOps();
std::span<const OpDef> quantizeOps();
std::span<const OpDef> quantizeParameterOps();
std::span<const OpDef> convOps();
std::span<const OpDef> poolOps();
std::span<const OpDef> averagePoolOps();
std::span<const OpDef> adaptivePoolOps();
std::span<const OpDef> resampleOps();
std::span<const OpDef> gridSampleOps();
std::span<const OpDef> recurrentOps();
std::span<const OpDef> gatherOps();
std::span<const OpDef> bagOps();
std::span<const OpDef> searchOps();
std::span<const OpDef> maskedIndexOps();
std::span<const OpDef> dataDependentOps();
std::span<const OpDef> indexOps();
std::span<const OpDef> scatterOps();
std::span<const OpDef> randomOps();
std::span<const OpDef> distributionOps();
std::span<const OpDef> gammaDrawOps();
std::span<const OpDef> attentionOps();
std::span<const OpDef> mutatingOps();
std::span<const OpDef> symbolicOps();
std::span<const OpDef> assertOps();

}  // namespace cutaway
