// ATen operators that are others by another name. Programs keep the name that their author has written.
#include <array>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/renamed.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct Synonym {
    std::string_view schema, means, samples;
    Tag tags = Tag::None;
};
constexpr Tag kSynonymsTags = Tag::Pointwise | Tag::Inplace;
constexpr std::string_view kPair = "f32[2, 3], f32[3]", kNumber = "f32[2, 3], 0.5\ni64[4], 2";

constexpr Synonym kSynonyms[] = {
    {"aten.multiply.Scalar(Tensor self, Scalar other) -> Tensor", "aten.mul.Scalar", kNumber, kSynonymsTags},
    {"aten.subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "aten.sub.Scalar", kNumber,
     kSynonymsTags},
    {"aten.divide.Scalar(Tensor self, Scalar other) -> Tensor", "aten.div.Scalar", kNumber, kSynonymsTags},
    {"aten.divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", "aten.div.Scalar_mode",
     "f32[2, 3], 0.5, rounding_mode = 'floor'\ni64[4], 2, rounding_mode = 'trunc'", kSynonymsTags},
    {"aten.divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", "aten.div.Tensor_mode",
     "f32[2, 3], f32[3]>0, rounding_mode = 'floor'", kSynonymsTags},
    {"aten.greater.Scalar(Tensor self, Scalar other) -> Tensor", "aten.gt.Scalar", kNumber, kSynonymsTags},
    {"aten.greater.Tensor(Tensor self, Tensor other) -> Tensor", "aten.gt.Tensor", kPair, kSynonymsTags},
    {"aten.greater_equal.Scalar(Tensor self, Scalar other) -> Tensor", "aten.ge.Scalar", kNumber, kSynonymsTags},
    {"aten.greater_equal.Tensor(Tensor self, Tensor other) -> Tensor", "aten.ge.Tensor", kPair, kSynonymsTags},
    {"aten.less.Scalar(Tensor self, Scalar other) -> Tensor", "aten.lt.Scalar", kNumber, kSynonymsTags},
    {"aten.less.Tensor(Tensor self, Tensor other) -> Tensor", "aten.lt.Tensor", kPair, kSynonymsTags},
    {"aten.less_equal.Scalar(Tensor self, Scalar other) -> Tensor", "aten.le.Scalar", kNumber, kSynonymsTags},
    {"aten.less_equal.Tensor(Tensor self, Tensor other) -> Tensor", "aten.le.Tensor", kPair, kSynonymsTags},
    {"aten.not_equal.Scalar(Tensor self, Scalar other) -> Tensor", "aten.ne.Scalar", kNumber, kSynonymsTags},
    {"aten.not_equal.Tensor(Tensor self, Tensor other) -> Tensor", "aten.ne.Tensor", kPair, kSynonymsTags},
    {"aten.arccos.default(Tensor self) -> Tensor", "aten.acos.default", "f32[2, 3]<1", kSynonymsTags},
    {"aten.arccosh.default(Tensor self) -> Tensor", "aten.acosh.default", "f32[2, 3]", kSynonymsTags},
    {"aten.arcsin.default(Tensor self) -> Tensor", "aten.asin.default", "f32[2, 3]<1", kSynonymsTags},
    {"aten.arcsinh.default(Tensor self) -> Tensor", "aten.asinh.default", "f32[2, 3]", kSynonymsTags},
    {"aten.arctan.default(Tensor self) -> Tensor", "aten.atan.default", "f32[2, 3]", kSynonymsTags},
    {"aten.arctanh.default(Tensor self) -> Tensor", "aten.atanh.default", "f32[2, 3]<1", kSynonymsTags},
    {"aten.fix.default(Tensor self) -> Tensor", "aten.trunc.default", "f32[2, 3]", kSynonymsTags},
    {"aten.special_exp2.default(Tensor self) -> Tensor", "aten.exp2.default", "f32[2, 3]", Tag::Pointwise},
    {"aten.special_logit.default(Tensor self, float? eps=None) -> Tensor", "aten.logit.default", "f32[2, 3], 0.1",
     Tag::Pointwise},
    {"aten.special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", "aten.xlogy.Scalar_Self", "2.5, f32[3]>0",
     Tag::Pointwise},
    {"aten.special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor", "aten.xlogy.Scalar_Other", "f32[3], 2.5",
     Tag::Pointwise},
    {"aten.special_gammainc.default(Tensor self, Tensor other) -> Tensor", "aten.igamma.default",
     "f32[2, 3]>0, f32[3]>0", Tag::Pointwise},
    {"aten.special_gammaincc.default(Tensor self, Tensor other) -> Tensor", "aten.igammac.default",
     "f32[2, 3]>0, f32[3]>0", Tag::Pointwise},
    {"aten.special_psi.default(Tensor self) -> Tensor", "aten.digamma.default", "f32[2, 3]>0", Tag::Pointwise},
    {"aten.special_round.default(Tensor self, *, int decimals=0) -> Tensor", "aten.round.decimals",
     "f32[2, 3], decimals = 1", Tag::Pointwise},
    {"aten.special_logsumexp.default(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", "aten.logsumexp.default",
     "f32[2, 3], [1]\nf32[2, 3], [0, 1], True"},
    {"aten.moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", "aten.movedim.int",
     "f32[2, 3, 4], 0, -1"},
    {"aten.moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", "aten.movedim.intlist",
     "f32[2, 3, 4], [0, 1], [2, 0]"},
    {"aten.rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     "aten.rand.default", "[2, 3], generator = None", Tag::Random | Tag::Factory},
    {"aten.randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     "aten.randn.default", "[2, 3], generator = None\n[4], generator = None, dtype = torch.float64",
     Tag::Random | Tag::Factory},
    {"aten.randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     "aten.randint.default", "5, [2, 3], generator = None", Tag::Random | Tag::Factory},
    {"aten.randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     "aten.randint.low", "-2, 5, [2, 3], generator = None", Tag::Random | Tag::Factory},
    {"aten.randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     "aten.randperm.default", "5, generator = None", Tag::Random | Tag::Factory},
    {"aten.rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     "aten.rand_like.default", "f32[2, 3], generator = None", Tag::Random},
    {"aten.randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     "aten.randn_like.default", "f32[2, 3], generator = None", Tag::Random},
    {"aten._stack.default(Tensor[] tensors, int dim=0) -> Tensor", "aten.stack.default", "[f32[2, 3], f32[2, 3]], 1"},
    {"aten.special_multigammaln.default(Tensor self, int p) -> Tensor", "aten.mvlgamma.default", "f32[2, 3]>0, 2"},
    // Python's operators that write, and calls that write in another name.
    {"aten.__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.bitwise_and_.Tensor",
     "i64[4], i64[4]<4"},
    {"aten.__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.bitwise_and_.Scalar", "i64[4], 3"},
    {"aten.__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.bitwise_or_.Tensor", "i64[4], i64[4]<4"},
    {"aten.__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.bitwise_or_.Scalar", "i64[4], 3"},
    {"aten.__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.bitwise_xor_.Tensor",
     "i64[4], i64[4]<4"},
    {"aten.__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.bitwise_xor_.Scalar", "i64[4], 3"},
    {"aten.__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.bitwise_left_shift_.Tensor",
     "i64[4], i64[4]<4"},
    {"aten.__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.bitwise_left_shift_.Tensor_Scalar",
     "i64[4], 3"},
    {"aten.__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.bitwise_right_shift_.Tensor",
     "i64[4], i64[4]<4"},
    {"aten.__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.bitwise_right_shift_.Tensor_Scalar",
     "i64[4], 3"},
    {"aten.swapaxes_.default(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", "aten.transpose_.default",
     "f32[2, 3, 4], 0, -1"},
    {"aten.swapdims_.default(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "aten.transpose_.default",
     "f32[2, 3, 4], 0, -1"},
    {"aten._index_put_impl_.default(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
     "aten.index_put_.default", "f32[4, 3], [i64[2]<4], f32[2, 3], True"},
    {"aten._index_put_impl.default(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor",
     "aten.index_put.default", "f32[4, 3], [i64[2]<4], f32[2, 3], True"},
};

/// The call by its other name. A `generator` is dropped: graphs hold no state of one; and whether indices are checked.
Values asMeant(Decomposition& d) {
    const Op& op = d.op().functional() ? *d.op().functional() : d.op();
    return sameCall(d, rowOf(kSynonyms, op.name()).means, {"generator", "unsafe"});
}

constexpr auto kSynonymsOps = [] {
    std::array<OpDef, std::size(kSynonyms)> ops;
    size_t at = 0;
    for (const Synonym& row : kSynonyms) ops[at++] = shorthand(row.schema, asMeant, row.samples, row.tags);
    return ops;
}();

}  // namespace

std::span<const OpDef> synonymOps() { return kSynonymsOps; }

}  // namespace cutaway
