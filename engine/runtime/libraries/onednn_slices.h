#pragma once
// Products that oneDNN would sum in an order that depends on the number of threads (its general product, "gemm", which
// it takes on processors without AVX-512): computed in slices instead, each by one thread. A slice's size depends on
// the product's sizes alone, so the bits do not depend on the number of threads.
#include "engine/runtime/libraries/onednn_plan.h"

namespace cutaway {

/// Part of a product along one of its dims.
struct ProductSlice {
    size_t dim = 0;  // of the result
    int64_t size = 0;
};
/// An argument of the product as it lies where the primitive reads it, as many dims as the result.
struct SlicedArgument {
    DnnlLayout layout;
    bool follows = true;  // it is cut, too: along rows the weights are not, along columns the first factor is not

    DnnlLayout slice(const ProductSlice& slice) const;
    /// Bytes from one slice to the next.
    int64_t step(const ProductSlice& slice) const;
};

/// Whether a primitive's sums depend on the number of threads.
bool dependsOnThreads(const char* implementation);
/// Along which dim a result of these sizes is cut, and how long a slice is.
ProductSlice sliceOf(const Dims& result);

/// Adds the product in slices of this size, with what is left as one more. `describe` gives the primitive's description
/// for a slice of so many; `layouts` say of each argument how it is cut.
void addInSlices(OneDnnPlan& plan, const ProductSlice& slice, int64_t whole,
                 const std::function<dnnl::matmul::primitive_desc(const ProductSlice&)>& describe,
                 const OneDnnPlan::Arguments& arguments, const std::vector<SlicedArgument>& layouts);

}  // namespace cutaway
