#pragma once
// Weights that freezing has packed for a library. Printed graphs give them no type, but the calls that read them tell
// their shape before packing. For the runnable form.
#include <map>
#include <string>

#include "engine/ir/module.h"

namespace cutaway::fxtext {

struct PackedWeight {
    TensorType plain;  // before packing
    /// mkl._mkl_linear's first weight: packed for this many rows. Others are packed by their operator when it is given
    /// the plain weight.
    std::optional<int64_t> packedForRows;
};

/// By attribute name: what mkl._mkl_linear and mkldnn._convolution_pointwise read without a type.
std::map<std::string, PackedWeight> packedWeights(const Module& module);

}  // namespace cutaway::fxtext
