#include "engine/formats/checked_tensor.h"

namespace cutaway {

Result<int64_t> reach(const Dims& sizes, const Dims& strides, int64_t offset, const std::string& fault,
                      const std::string& where) {
    auto fail = [&](std::string what) { return invalidInput(fault + ": " + std::move(what), where); };
    if (sizes.size() != strides.size())
        return fail(std::to_string(sizes.size()) + " sizes but " + std::to_string(strides.size()) + " strides");
    if (offset < 0) return fail("negative storage offset " + std::to_string(offset));
    bool empty = false;
    int64_t product = 1, last = offset;
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] < 0) return fail("negative size " + std::to_string(sizes[i]));
        if (strides[i] < 0) return fail("negative stride " + std::to_string(strides[i]));
        empty |= sizes[i] == 0;
        // A size of 0 counts as 1 here, so that row-major strides of any accepted sizes can be formed too.
        if (__builtin_mul_overflow(product, std::max<int64_t>(sizes[i], 1), &product))
            return fail("sizes overflow 64 bits");
        int64_t step = 0;
        if (__builtin_mul_overflow(std::max<int64_t>(sizes[i], 1) - 1, strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return fail("sizes and strides overflow 64 bits");
    }
    if (product > std::numeric_limits<int64_t>::max() / 16 || last > std::numeric_limits<int64_t>::max() / 16 - 1)
        return fail("sizes and strides overflow 64 bits");
    return empty ? 0 : last + 1;
}

Result<Tensor> makeTensor(std::shared_ptr<Storage>& bytes, DType dtype, Dims sizes, Dims strides, int64_t offset,
                          const std::string& fault, const std::string& where) {
    CT_TRY(const int64_t elements, reach(sizes, strides, offset, fault, where));
    const auto itemSize = static_cast<size_t>(byteSize(dtype));
    if (static_cast<uint64_t>(elements) > bytes->size() / itemSize)
        return invalidInput(fault + ": it reaches " + std::to_string(elements) + " elements of " +
                                std::to_string(itemSize) + " bytes, the storage has " + std::to_string(bytes->size()) +
                                " bytes",
                            where);
    if (elements == 0) offset = 0;
    if (!bytes->aligned(itemSize)) {
        auto copy = Storage::allocateUninitialized(bytes->size());
        std::memcpy(copy->data(), bytes->data(), bytes->size());
        bytes = std::move(copy);
    }
    return Tensor(bytes, dtype, std::move(sizes), std::move(strides), offset);
}

}  // namespace cutaway
