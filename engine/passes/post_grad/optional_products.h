#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// `decompose_mm_pass` (PST-17): products that only wait for memory become a product and a sum of broadcast operands.
/// Settings and their defaults are PyTorch's: min_first_dimension_decomposition 10240 and
/// max_other_dimension_decomposition 32 on the GPU, cpu_max_first_dimension_decomposition 1 and
/// cpu_max_other_dimension_decomposition 2048 on the CPU, skip_dynamic_shape_dim_check to take symbolic sizes for
/// fitting. Leaves alone addmm with factors other than 1, which PyTorch drops (parity).
Result<bool> decomposeProducts(Module& module, Rewriter& rewriter);
std::span<const Rule> decomposeProductRules();

/// `mm_plus_mm` (PST-8, on with max_autotune as in PyTorch): two products that are added become a call of PyTorch's
/// mm_plus_mm, which a kernel of the compiler's own computes, or two products and a sum. Leaves alone a second product
/// that is scaled (PyTorch drops the factor: parity).
Result<bool> mergeAddedProducts(Module& module, Rewriter& rewriter);
std::span<const Rule> addedProductRules();

/// `partitioned_scatter` (PST-16): adding many values at few places goes to several copies of the target, which are
/// summed. Settings: min_index_size 4096, min_partitions 2, max_partitions 128; memory_bytes and memory_budget 0.1
/// limit the copies, without memory_bytes nothing does. Leaves alone: several indices, masks, symbolic sizes, values
/// that are broadcast.
Result<bool> partitionScatters(Module& module, Rewriter& rewriter);
std::span<const Rule> partitionedScatterRules();

}  // namespace cutaway
