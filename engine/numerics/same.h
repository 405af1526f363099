#pragma once
// PyTorch's same() (torch/_dynamo/utils.py): whether a result is as good as the one it is held against. Rules SAME-1
// to SAME-9, to the number, with the rounding of its allclose in each dtype. Where PyTorch asserts or broadcasts
// (lists of other lengths, other shapes), the answer is no.
#include "cutaway/node_numbers.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct SameAnswer {
    bool same = true;
    std::string why;  // of a no
};

/// torch.allclose: |a - b| <= absolute + relative |b|, computed in the dtype of the two.
bool allClose(const Tensor& a, const Tensor& b, double absolute, double relative, bool equalNan);

/// `wide`: the same in f64; undefined for none, which PyTorch takes for `reference` itself.
SameAnswer same(const Tensor& reference, const Tensor& result, const Tensor& wide, const JudgeOptions& options);
/// Of lists: as long, and the same item by item.
SameAnswer same(const std::vector<Tensor>& reference, const std::vector<Tensor>& result,
                const std::vector<Tensor>& wide, const JudgeOptions& options);

}  // namespace cutaway
