#pragma once
// The runnable form: a Python file that needs nothing but PyTorch.
#include "engine/text/print.h"

namespace cutaway::fxtext {

PrintedText printRunnable(const Module& module, const PrintOptions& options);

}  // namespace cutaway::fxtext
