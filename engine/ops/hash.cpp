// Hashes of tensors: the bits of all elements, exclusive or.
#include <cstring>

#include "engine/ops/kernels_reduce.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/reduce_rules.h"

namespace cutaway {
namespace {

Result<ValueType> inferHash(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t mode, c.integer("mode"));
    if (mode != 0) return c.fail("knows mode 0 (exclusive or) only, not " + std::to_string(mode));
    if (isComplex(self.dtype)) return c.fail("takes real numbers; write torch.view_as_real(x) for " + self.text());
    CT_TRY(const std::vector<int64_t> dims, c.dims("dim", self.rank(), true));
    for (const int64_t dim : dims)
        if (self.sizes[static_cast<size_t>(dim)] == SymInt(0))
            return c.fail("dim " + std::to_string(dim) + " of " + self.text() + " has no elements to hash");
    CT_TRY(TensorType type, reducedType(c, DType::U64));
    return ValueType(std::move(type));
}
/// Floats count as doubles, integers as 64 bits.
EvalResult evalHash(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    std::vector<int64_t> hashes(static_cast<size_t>(numel(c.resultSizes())));
    const auto gather = [&](auto tag) {
        using T = decltype(tag);
        forEachReduced<T>(self, reducedDims(c, self.rank()), [&](int64_t position, const ReducedElements<T>& elements) {
            elements.forEachRun([&](const T* run, int64_t n) {
                for (int64_t i = 0; i < n; ++i) {
                    int64_t bits;
                    std::memcpy(&bits, run + i, sizeof(bits));
                    hashes[static_cast<size_t>(position)] ^= bits;
                }
            });
        });
    };
    if (isFloating(self.dtype())) gather(double{});
    else gather(int64_t{});
    return storeReduced<int64_t>(c, hashes);
}

constexpr OpDef kHashOps[] = {
    {.schema = "aten.hash_tensor.default(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferHash,
     .eval = evalHash,
     .samples = "f32[2, 3]\ni64[2, 3], [1]\nb8[4], [0], keepdim = True\nf32[2, 3, 4][12, 1, 3], [0, 2]"},
};

}  // namespace

std::span<const OpDef> hashOps() { return kHashOps; }

}  // namespace cutaway
