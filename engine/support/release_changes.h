#pragma once
// What a release of PyTorch changed where no row stands for it: a branch of a pass or of a formula.
#include <span>
#include <string_view>

#include "cutaway/releases.h"

namespace cutaway {

enum class Change : uint8_t {
    ProductsOfOneTerm,
    LerpOfSums,
    SavedLogSigmoid,
    GradientOfSilu,
    MaskedEmbedding,
    WholeSoftmax,
    WiderFirst,
    SelectedDtype,
    ReciprocalRoot,
    PlainDropout,
    GroupNormTerms,
    NumbersThatChangeNothing,
    ProductsWithZero,
    PermutationRows,
    QuantizationElsewhere,
    SignOfLogNormal,
};

struct ChangeRow {
    Change change;
    Release since;  // the first that has it
    std::string_view stage, name, what;
};
/// In the order of the releases.
std::span<const ChangeRow> releaseChanges();
bool has(Release release, Change change);

}  // namespace cutaway
