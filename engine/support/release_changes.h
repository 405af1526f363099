#pragma once
// What a release of PyTorch changed where no row stands for it: a branch of a pass or of a formula.
#include <span>
#include <string_view>

#include "cutaway/releases.h"

namespace cutaway {

enum class ReleaseChange : uint8_t {
    ProductsOfOneTerm,
    LerpOfSums,
    SavedLogSigmoid,
    TangentsAsOutputs,
    DrawsInOrder,
    TruncatedFraction,
    GradientOfSilu,
    MaskedEmbedding,
    WholeSoftmax,
    WiderFirst,
    SelectedDtype,
    ReciprocalRoot,
    PlainDropout,
    GroupNormTerms,
    GradientAtBounds,
    NumbersThatChangeNothing,
    ProductsWithZero,
    PermutationRows,
    QuantizationElsewhere,
    SidesMergedApart,
    CountsInF64,
    SignOfLogNormal,
    MaximumOfAll,
    BoundsInOpmath,
    StridesOfBorders,
    RoundedLambda,
    WeightsOfRows,
    AttentionOfThreeDims,
    UniformOfRand,
    AddendOfAddmv,
    StridesOfMaxima,
    BiasesAlone,
};

struct ChangeRow {
    ReleaseChange change;
    Release since;  // the first that has it
    std::string_view stage, name, what;
};
/// In the order of the releases.
std::span<const ChangeRow> releaseChanges();
bool has(Release release, ReleaseChange change);

}  // namespace cutaway
