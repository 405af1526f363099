#include "engine/support/pytorch_options.h"

namespace cutaway {
namespace {

using enum Release;

constexpr OptionRow kOptionRows[] = {
#include "engine/support/pytorch_options.inc"
};

}  // namespace

std::span<const OptionRow> pytorchOptions() { return kOptionRows; }

}  // namespace cutaway
