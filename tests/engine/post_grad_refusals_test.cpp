// What the post-grad passes that are written as functions say of nodes that they leave alone: the first condition that failed.
#include <QtTest>

#include <set>

#include "engine/passes/pass_runner.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/rule_tables.h"
#include "engine/rewrite/matcher.h"
#include "engine/text/parse.h"

using namespace cutaway;

namespace {

struct Row {
    const char* rule;       // "pass/rule"
    const char* options;    // "cuda parity NAME=key:value", as in tests/cases
    const char* node;
    const char* sentence;
};
struct Group {
    const char* graph;
    std::vector<Row> rows;
};

#define ON_CPU "layout = torch.strided, device = device(type='cpu'), pin_memory = False"

const std::vector<Group>& groups() {
    static const std::vector<Group> kGroups = {
        {R"(def forward(x: "f32[4]"):
    r: "f32[]" = profiler._record_function_enter_new.default('region')
    e = profiler._record_function_exit._RecordFunction(r)
    o: "f32[]" = profiler._record_function_enter.default('old')
    f = profiler._record_function_exit.default(o)
    a = aten._assert_tensor_metadata.default(x)
    return (x, r, e, f, a)
)",
         {{"remove_profiler_ops/_record_function_enter_new", "", "r", "`e` reads it"},
          {"remove_profiler_ops/_record_function_enter", "", "o", "`f` reads it"},
          {"remove_profiler_ops/_record_function_exit", "", "f", "`output` reads it"},
          {"remove_assert_ops/_assert_tensor_metadata", "", "a", "`output` reads it"}}},
        {R"(def forward(x: "f32[4, 6]", w: "f32[4]"):
    late: "f32[4, 6]" = aten.exp.default(x)
    s = aten.split.Tensor(x, 3, 1)
    a: "f32[4, 3][6, 1]" = s[0]
    near: "f32[4, 3]" = aten.neg.default(a)
    dead: "f32[4]" = aten.cos.default(w)
    v: "f32[4, 6]" = aten.view.default(late, [4, 6])
    before: "f32[4]" = aten.sin.default(w)
    c: "f32[4]" = aten.copy_.default(w, before)
    behind: "f32[4, 6]" = aten.tanh.default(v)
    return (near, behind)
)",
         {{"reorder_for_locality/reorder_for_locality", "", "a", "what takes a result out of a tuple is not moved"},
          {"reorder_for_locality/reorder_for_locality", "", "dead", "nobody reads it"},
          {"reorder_for_locality/reorder_for_locality", "", "before", "it is not read before `c`, and what stands from there on keeps its order"},
          {"reorder_for_locality/reorder_for_locality", "", "s", "it stands where the walk puts it, before `a`, its first reader"},
          {"stable_sort/stable_topological_sort", "", "v", "it stands behind all its operands"}}},
        {R"(def forward(x: "f32[4, 9]", z: "f32[4, 2]", h: "f64[4, 2]"):
    s = aten.split_with_sizes.default(x, [2, 3, 4], 1)
    b: "f32[4, 3][9, 1]" = s[1]
    c: "f32[4, 4][9, 1]" = s[2]
    few: "f32[4, 7]" = aten.cat.default([b, c], 1)
    apart: "f32[4, 9]" = aten.cat.default([b, z, c], 1)
    none: "f32[4, 4]" = aten.cat.default([z, z], 1)
    t = aten.split_with_sizes.default(x, [2, 2])
    d: "f32[2, 9]" = t[0]
    e: "f32[2, 9]" = t[1]
    other: "f32[2, 18]" = aten.cat.default([d, e], 1)
    mixed: "f64[4, 4]" = aten.cat.default([z, h], 1)
    return (few, apart, none, other, mixed)
)",
         {{"split_cat_aten_pass/merge_split_cat_aten", "", "few", "it joins 2 tensors, fewer than threshold_to_cat, 10"},
          {"split_cat_aten_pass/merge_split_cat_aten", "split_cat_aten_pass=threshold_to_cat:2", "apart",
           "its longest run of neighbouring pieces begins at `b` and has 1 of the 3 pieces of `s`; it takes all of them or threshold_to_cat, 2"},
          {"split_cat_aten_pass/merge_split_cat_aten", "split_cat_aten_pass=threshold_to_cat:2", "none",
           "none of its operands is a piece of an aten.split_with_sizes with known sizes: the first is `z` (an input)"},
          {"split_cat_aten_pass/merge_split_cat_aten", "split_cat_aten_pass=threshold_to_cat:2", "other", "its dim is 1, that of `t`, whose pieces it joins, 0"},
          {"split_cat_aten_pass/merge_split_cat_aten", "", "mixed", "it converts `z` from f32[4, 2] to the dtype of f64[4, 4]"}}},
        {R"(def forward(x: "f32[4, 3, 5]", z: "f32[4, 3, 5]"):
    a: "f32[4, 5][15, 1]" = aten.select.int(x, 1, 0)
    b: "f32[4, 5][15, 1]" = aten.select.int(x, 1, 1)
    c: "f32[4, 5][15, 1]" = aten.select.int(x, 1, 2)
    o: "f32[4, 5][15, 1]" = aten.select.int(z, 1, 2)
    along: "f32[12, 5]" = aten.cat.default([a, b, c])
    two: "f32[4, 15]" = aten.cat.default([a, b, o], 1)
    part: "f32[4, 10]" = aten.cat.default([a, b], 1)
    order: "f32[4, 15]" = aten.cat.default([b, a, c], 1)
    read: "f32[4, 15]" = aten.cat.default([a, b, c], 1)
    plain: "f32[4, 6, 5]" = aten.cat.default([x, z], 1)
    ua: "f32[4, 1, 5][15, 15, 1]" = aten.unsqueeze.default(a, 1)
    ub: "f32[4, 1, 5][15, 15, 1]" = aten.unsqueeze.default(b, 1)
    flat: "f32[8, 1, 5]" = aten.cat.default([ua, ub])
    half: "f32[4, 2, 5]" = aten.cat.default([ua, ub], 1)
    e: "f32[4, 3, 5]" = aten.exp.default(x)
    return (along, two, part, order, read, plain, flat, half, e)
)",
         {{"select_cat_aten_pass/merge_select_cat_aten", "", "along", "`a` takes an item along dim 1, but they are joined along dim 0"},
          {"select_cat_aten_pass/merge_select_cat_aten", "", "two", "`o` takes an item of `z`, `a` takes one of `x`"},
          {"select_cat_aten_pass/merge_select_cat_aten", "", "part", "it joins 2 items of `x`, which has 3 along dim 1"},
          {"select_cat_aten_pass/merge_select_cat_aten", "", "order", "`b` is item 1 of `x` and stands as number 0"},
          {"select_cat_aten_pass/merge_select_cat_aten", "", "read", "`plain` (aten.cat.default) reads `x`, too"},
          {"select_cat_aten_pass/merge_select_cat_aten", "", "plain", "`x` (an input) is no aten.select.int"},
          {"unbind_stack_aten_pass/merge_unbind_stack_aten", "", "plain", "`x` (an input) is no aten.unsqueeze: tensors are joined, not stacked"},
          {"unbind_stack_aten_pass/merge_unbind_stack_aten", "", "flat", "`ua` gets its new dim at 1, but they are joined along dim 0"},
          {"unbind_stack_aten_pass/merge_unbind_stack_aten", "", "half", "it joins 2 items of `x`, which has 3 along dim 1"},
          {"unbind_stack_aten_pass/merge_unbind_stack_aten", "parity", "half", "PyTorch's pattern for stacked items never applies, and parity does as PyTorch"}}},
        {R"(def forward(x: "f32[4, 3, 5]", z: "f32[2, 4]"):
    a: "f32[4, 5][15, 1]" = aten.select.int(x, 1, 0)
    b: "f32[4, 5][15, 1]" = aten.select.int(x, 1, 1)
    c: "f32[4, 5][15, 1]" = aten.select.int(x, 1, 2)
    behind: "f32[4, 15]" = aten.cat.default([a, b, c], -1)
    d: "f32[4]" = aten.select.int(z, 0, 0)
    e: "f32[4]" = aten.select.int(z, 0, 1)
    default: "f32[8]" = aten.cat.default([d, e])
    return (behind, default)
)",
         {{"select_cat_aten_pass/merge_select_cat_aten", "", "behind", "its dim and that of `a` are written in two ways, which PyTorch does not see through"},
          {"select_cat_aten_pass/merge_select_cat_aten", "", "default", "PyTorch's pattern needs the default dim spelled out by normalization_aten_pass"}}},
        {R"(def forward(x: "f32[4, 6]", z: "f32[4, 3]"):
    s = aten.split_with_sizes.default(x, [3, 3], 1)
    a: "f32[4, 3][6, 1]" = s[0]
    b: "f32[4, 3][6, 1]" = s[1]
    ra: "f32[12]" = aten.reshape.default(a, [12])
    rb: "f32[12]" = aten.reshape.default(b, [12])
    rz: "f32[12]" = aten.reshape.default(z, [12])
    joined: "f32[24]" = aten.cat.default([ra, rb])
    swapped: "f32[24]" = aten.cat.default([rb, ra])
    one: "f32[12]" = aten.cat.default([ra])
    mixed: "f32[24]" = aten.cat.default([ra, rz])
    bare: "f32[4, 6]" = aten.cat.default([a, b], 1)
    return (joined, swapped, one, mixed, bare)
)",
         {{"move_view_after_cat_aten_pass/move_view_after_cat_aten", "", "joined",
           "one reshape of `x` puts other elements together: pieces f32[4, 3][6, 1] along dim 1 become f32[12] and are joined along dim 0"},
          {"move_view_after_cat_aten_pass/move_view_after_cat_aten", "", "swapped", "`rb` is piece 1 of `s` and stands as number 0"},
          {"move_view_after_cat_aten_pass/move_view_after_cat_aten", "", "one", "it joins 1 of the 2 pieces of `s`"},
          {"move_view_after_cat_aten_pass/move_view_after_cat_aten", "", "mixed",
           "`z` (an input), which `rz` reshapes, is no piece of an aten.split_with_sizes with known sizes"},
          {"move_view_after_cat_aten_pass/move_view_after_cat_aten", "", "bare", "`a` (operator.getitem) is no aten.reshape"}}},
        {R"(def forward(a: "f16[256, 32]cuda:0", b: "f16[32, 256]cuda:0", c: "f16[256, 32]cuda:0", k: "f32[4, 4]"):
    p: "f16[256, 256]cuda:0" = aten.mm.default(a, b)
    y: "f16[256, 32]cuda:0" = aten.mm.default(p, c)
    q: "f16[256, 256]cuda:0" = aten.mm.default(a, b)
    s: "f16[256, 256]cuda:0" = aten._softmax.default(q, 1, False)
    z: "f16[256, 32]cuda:0" = aten.mm.default(s, c)
    r: "f16[256, 256]cuda:0" = aten.mm.default(a, b)
    n: "f16[256, 256]cuda:0" = aten.neg.default(r)
    w: "f16[256, 32]cuda:0" = aten.mm.default(n, c)
    t: "f16[256, 256]cuda:0" = aten.mm.default(a, b)
    u: "f16[256, 256]cuda:0" = aten.add.Tensor(t, s)
    v: "f16[256, 32]cuda:0" = aten.mm.default(u, c)
    square: "f32[4, 4]" = aten.mm.default(k, k)
    host: "f32[4, 4]" = aten.mm.default(square, k)
    last: "f32[4, 4]" = aten.mm.default(host, k)
    return (y, z, w, v, last, n)
)",
         {{"b2b_gemm_pass/b2b_gemm", "cuda", "y", "`y` is returned before a second product reads it"},
          {"b2b_gemm_pass/b2b_gemm", "cuda", "q", "`s` (aten._softmax.default) reads `q` before a second product does, and is not pointwise"},
          {"b2b_gemm_pass/b2b_gemm", "cuda", "r", "`n` is an output, too, beside the product `w`"},
          {"b2b_gemm_pass/b2b_gemm", "cuda", "t", "`u` reads `s`, too, which is not made of it"},
          {"b2b_gemm_pass/b2b_gemm", "cuda", "square", "both factors are `k`"},
          {"b2b_gemm_pass/b2b_gemm", "cuda", "host", "`square`, f32[4, 4], is not on a GPU"}}},
        {R"(def forward(a: "f16[32, 1024]cuda:0", b: "f16[1024, 1024]cuda:0", c: "f16[1024, 1024]cuda:0"):
    p: "f16[32, 1024]cuda:0" = aten.mm.default(a, b)
    y: "f16[32, 1024]cuda:0" = aten.mm.default(p, c)
    return (y,)
)",
         {{"b2b_gemm_pass/b2b_gemm", "cuda", "p", "one kernel would load more: two kernels load 12.1 % of what it loads, for f16[32, 1024]cuda:0, f16[1024, 1024]cuda:0 and f16[1024, 1024]cuda:0"}}},
        {R"(def forward(x: "f32[1024]", y: "f32[1024]", z: "f64[8]", n: "f32[]"):
    a: "f32[1024]" = _c10d_functional.all_reduce.default(x, 'sum', '0')
    u: "f32[1024]" = _c10d_functional.wait_tensor.default(a)
    b: "f32[1024]" = _c10d_functional.all_reduce.default(u, 'sum', '0')
    v: "f32[1024]" = _c10d_functional.wait_tensor.default(b)
    c: "f64[8]" = _c10d_functional.all_reduce.default(z, 'sum', '0')
    w: "f64[8]" = _c10d_functional.wait_tensor.default(c)
    d: "f64[8]" = _c10d_functional.all_reduce.default(w, 'avg', '0')
    k: "f64[8]" = _c10d_functional.wait_tensor.default(d)
    e: "f32[1024]" = _c10d_functional.all_reduce.default(y, 'sum', '0')
    f: "f32[1024]" = _c10d_functional.all_reduce.default(y, 'max', '0')
    g: "f32[1024]" = _c10d_functional.wait_tensor.default(f)
    h: "f32[1024]" = aten.neg.default(f)
    m: "f32[512]" = _c10d_functional.reduce_scatter_tensor.default(x, 'sum', 2, '0')
    i: "f32[512]" = _c10d_functional.wait_tensor.default(m)
    o: "f32[2]" = _c10d_functional.all_gather_into_tensor.default(n, 2, '0')
    j: "f32[2]" = _c10d_functional.wait_tensor.default(o)
    return (v, k, e, g, h, i, j)
)",
         {{"bucket_all_reduce/bucket_all_reduce", "", "b", "it needs what `a` or another of its bucket gives"},
          {"bucket_all_reduce/bucket_all_reduce", "", "a", "`b`, which is waited for next, does not do the same with a tensor of the same dtype"},
          {"bucket_all_reduce/bucket_all_reduce", "", "c", "`a`, which is waited for before it, sends f32[1024], it sends f64[8]: dtype or device differ"},
          {"bucket_all_reduce/bucket_all_reduce", "", "d", "`c`, which is waited for before it, has 'reduce_op' 'sum', it has 'avg'"},
          {"bucket_all_reduce/bucket_all_reduce", "", "e", "no _c10d_functional.wait_tensor.default reads it"},
          {"bucket_all_reduce/bucket_all_reduce", "", "f", "it has 2 readers, not one wait alone"},
          {"bucket_reduce_scatters/bucket_reduce_scatters", "", "m", "no other _c10d_functional.reduce_scatter_tensor.default is waited for beside it"},
          {"bucket_all_gathers/bucket_all_gathers", "", "o", "`n` is a single number, f32[]"}}},
        {R"(def forward(x: "f32[1024]", y: "f32[1024]", z: "f32[1024]"):
    a: "f32[1024]" = _c10d_functional.all_reduce.default(x, 'sum', '0')
    u: "f32[1024]" = _c10d_functional.wait_tensor.default(a)
    b: "f32[1024]" = _c10d_functional.all_reduce.default(y, 'sum', '0')
    v: "f32[1024]" = _c10d_functional.wait_tensor.default(b)
    c: "f32[1024]" = _c10d_functional.all_reduce.default(z, 'sum', '0')
    w: "f32[1024]" = _c10d_functional.wait_tensor.default(c)
    return (u, v, w)
)",
         {{"bucket_all_reduce/bucket_all_reduce", "", "b", "it goes into the bucket that `a` begins"},
          {"bucket_all_reduce/bucket_all_reduce", "bucket_all_reduce=bucket_cap_mb:0.0079", "c", "with `b` the bucket would have 0.0117 MB, more than bucket_cap_mb, 0.0079"},
          {"bucket_all_reduce/bucket_all_reduce", "bucket_all_reduce=bucket_cap_mb:0.005", "a", "with `b` the bucket would have 0.00781 MB, more than bucket_cap_mb, 0.005"}}},
    };
    return kGroups;
}

const std::vector<Group>& writes() {
    static const std::vector<Group> kGroups = {
        {R"(def forward(x: "f32[4, 3]cuda:0", h: "f32[3]", n: "f32[]", m: "f32[]"):
    i: "i64[2]" = aten.arange.start(0, 2, dtype = torch.int64, )" ON_CPU R"()
    y: "f32[2, 3]cuda:0" = aten.index.Tensor(x, [i])
    r: "f32[3]" = aten.rand.default([3], dtype = torch.float32, )" ON_CPU R"()
    f: "f32[3]" = aten.full.default([3], 1, dtype = torch.float32, )" ON_CPU R"()
    g: "f32[3]" = aten.add.Tensor(f, h)
    k: "f32[3]" = aten.full.default([3], 2, dtype = torch.float32, )" ON_CPU R"()
    l: "f32[3]" = aten.neg.default(k)
    q: "f32[4, 3]cuda:0" = aten.mul.Tensor(x, n)
    t: "f32[4, 3]cuda:0" = aten.mul.Tensor(q, m)
    return (y, i, r, g, t, n)
)",
         {{"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "i", "`i` is returned, and the caller expects it on the CPU"},
          {"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "y", "it is not made on the CPU"},
          {"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "r", "another device would draw other random numbers"},
          {"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "g", "the operator is not told on which device it makes its result"},
          {"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "f", "`h`, an input on the CPU, would have to move with it"},
          {"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "k", "no call on the GPU reads what is made of it"},
          {"move_constructors_to_cuda/move_scalars_to_cuda", "cuda", "m", "CUDA graphs, which take no numbers from the CPU, are off (--enable cudagraphs)"},
          {"move_constructors_to_cuda/move_scalars_to_cuda", "cuda cudagraphs", "n", "`n` is returned, and the caller expects it on the CPU"},
          {"move_constructors_to_cuda/move_scalars_to_cuda", "cuda cudagraphs", "h", "it is f32[3], no single number on the CPU"}}},
        {R"(def forward(n: "f32[]", x: "f32[4]cuda:0"):
    p: "f32[]cuda:0" = prims.device_put.default(n, device(type='cuda', index=0))
    y: "f32[4]cuda:0" = aten.mul.Tensor(x, p)
    z: "f32[4]cuda:0" = aten.mul.Tensor(y, n)
    return (z,)
)",
         {{"move_constructors_to_cuda/move_constructors_to_cuda", "cuda cudagraphs", "p", "it copies `n`, which goes to the GPU in one copy with its kind"}}},
        {R"(def forward(x: "f32[4]", n: "f32[]"):
    f: "f32[4]" = aten.full.default([4], 1, dtype = torch.float32, )" ON_CPU R"()
    y: "f32[4]" = aten.add.Tensor(x, f)
    return (y,)
)",
         {{"move_constructors_to_cuda/move_constructors_to_cuda", "cuda", "f", "no value of the graph is on a GPU"},
          {"move_constructors_to_cuda/move_scalars_to_cuda", "cuda cudagraphs", "n", "no value of the graph is on a GPU"},
          {"fake_tensor_update/fake_tensor_update", "", "y", "its operands give the type that it has, f32[4]"}}},
        {R"(def forward(x: "f32[4]", v: "f32[2]", w: "f32[4]", i: "i64[2]"):
    f: "f32[4]" = aten.full.default([4], 0.5, dtype = torch.float32, )" ON_CPU R"()
    later: "f32[4]" = aten.index_put.default(f, [i], v)
    sum: "f32[4]" = aten.add.Tensor(f, later)
    input: "f32[4]" = aten.index_put.default(x, [i], v)
    p: "f32[2]" = aten.slice.Tensor(w, 0, 0, 2)
    part: "f32[2]" = aten.index_put.default(p, [i], v)
    e: "f32[4]" = aten.exp.default(w)
    s: "f32[2, 2]" = aten.view.default(e, [2, 2])
    viewed: "f32[4]" = aten.index_put.default(e, [i], v)
    t: "f32[2, 2]" = aten.neg.default(s)
    early: "f32[4]" = aten.neg.default(w)
    c: "f32[4]" = aten.copy_.default(w, early)
    n: "f32[4]" = aten.index_put.default(w, [i], v)
    a: "f32[4]" = aten.sin.default(v)
    own: "f32[4]" = aten.index_put.default(a, [i], a)
    return (sum, input, part, viewed, t, n, own)
)",
         {{"reinplace_inplaceable_ops/reinplace", "", "later", "`sum` reads `f` later"},
          {"reinplace_inplaceable_ops/reinplace", "", "input", "`x` is an input, and the caller does not expect it to change: no aten.copy_ writes to it"},
          {"reinplace_inplaceable_ops/reinplace", "", "part", "`p` is a view of the input `w`"},
          {"reinplace_inplaceable_ops/reinplace", "", "viewed", "`t` reads `s`, which shares memory with `e`, later"},
          {"reinplace_inplaceable_ops/reinplace", "", "n", "`c`, the copy into the input `w`, stands before it"},
          {"reinplace_inplaceable_ops/reinplace", "", "own", "it reads `a`, whose memory it would write, at the same time"}}},
        {R"(def forward(x: "f32[4]", v: "f32[2]", w: "f32[2]"):
    e: "f32[4]" = aten.exp.default(x)
    o: "f32[4]" = aten.slice_scatter.default(e, v, 0, 0, 2)
    y: "f32[4]" = aten.neg.default(o)
    p: "f32[2]" = aten.slice.Tensor(e, 0, 2, 4)
    inner: "f32[2]" = aten.slice_scatter.default(p, w, 0, 0, 2)
    outer: "f32[4]" = aten.slice_scatter.default(e, inner, 0, 0, 2)
    z: "f32[4]" = aten.neg.default(outer)
    return (y, z)
)",
         {{"reinplace_inplaceable_ops/reinplace", "", "o", "`p` reads `e` later"},
          {"reinplace_inplaceable_ops/reinplace", "", "outer", "`e` may be computed where it is read: it is neither an input nor returned, and no library makes or reads it"},
          {"reinplace_inplaceable_ops/merge_scatters", "", "o", "it writes `v`, which no write into a place has made"},
          {"reinplace_inplaceable_ops/merge_scatters", "", "outer", "`inner` is made of `p`, which does not show the place of `e` that it writes to"}}},
        {R"(def forward(x: "f32[4]", y: "f32[4]", i: "f32[3]"):
    a = aten._foreach_add.Scalar([x, y], 1)
    b: "f32[4]" = a[0]
    c: "f32[4]" = a[1]
    d: "f32[4]" = aten.copy_.default(x, b)
    return (c,)
)",
         {{"reinplace_inplaceable_ops/reinplace", "", "a", "what is made of `y` is not copied into it: lists are written to as a whole or not at all"}}},
        {R"(def forward(x: "f32[2]", m: "f32[3, 2]", k: "f32[]"):
    c = higher_order.map_impl(body, [m], [x])
    r: "f32[3, 2]" = c[0]
    few = higher_order.map_impl(body, [m], [])
    scalar = higher_order.map_impl(body, [k], [x])
    none = higher_order.map_impl(body, [], [m, x])
    s = higher_order.scan(body, [x], [m], [x])
    return (r, few, scalar, none, s)

def body(a: "f32[2]", y: "f32[2]"):
    b: "f32[2]" = aten.mul.Tensor(a, y)
    return (b,)
)",
         {{"decompose_map_to_while_loop/map_to_while_loop", "", "few", "body takes 2 values, and is given 1"},
          {"decompose_map_to_while_loop/map_to_while_loop", "", "scalar", "`k` has no dim to go along"},
          {"decompose_map_to_while_loop/map_to_while_loop", "", "none", "it is given no items to go through"},
          {"decompose_scan_to_while_loop/scan_to_while_loop", "", "s", "body takes 2 values, and is given 3"}}},
        {R"(def forward(x: "f32[4]", y: "f32[4]"):
    k = higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, grid = [(1, 1, 1)], kwargs = {'a': x, 'b': y}, tensors_to_clone = ['a'])
    g: "f32[4]" = k['b']
    l = higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, grid = [(1, 1, 1)], kwargs = {'a': x, 'b': y}, tensors_to_clone = ['z'])
    return (g, l)
)",
         {{"decompose_triton_kernel_wrapper_functional/decompose_triton_kernel_wrapper", "", "k", "`g` reads 'b', which the kernel does not write to"},
          {"decompose_triton_kernel_wrapper_functional/decompose_triton_kernel_wrapper", "", "l", "tensors_to_clone names 'z', which is no tensor that the kernel is given"}}},
    };
    return kGroups;
}

/// Of rules that are data: the pattern fits, the condition does not hold, or an output must not share memory.
const std::vector<Group>& conditions() {
    static const std::vector<Group> kGroups = {
        {R"(def forward(a: "f32[4, 8]", b: "f32[8, 4]", c: "f32[4, 4]", i: "i64[2]", v: "f32[2, 4]"):
    y: "f32[4, 4]" = aten.mm.default(a, b)
    z: "f32[4, 4]" = aten.addmm.default(c, a, b)
    h: "f32[4, 4]" = aten.addmm.default(c, a, b, beta=2)
    j: "f32[4, 8]" = aten.cat.default([c, c], 1)
    p: "f32[4, 4]" = aten.mm.default(a, b)
    q: "f32[4, 4]" = aten.mm.default(c, c)
    s: "f32[4, 4]" = aten.add.Tensor(p, q, alpha=3)
    put: "f32[4, 4]" = aten.index_put.default(c, [i], v, True)
    k: "f32[4, 4]" = aten.cumsum.default(c, 1)
    o: "f32[4, 4]" = aten.full.default([4, 4], 0.5, dtype = torch.float32, )" ON_CPU R"()
    n: "i64[4, 4]" = aten.cumsum.default(o, 1, dtype = torch.int64)
    f = aten.split_with_sizes.default(c, [1, 3], 1)
    f0: "f32[4, 1][4, 1]" = f[0]
    return (y, z, h, j, s, put, k, n, f0)
)",
         {{"decompose_mm_pass/decompose_mm", "", "y", "`a`, f32[4, 8], has too many rows: it is 4, and must be at most 1"},
          {"decompose_mm_pass/decompose_mm", "decompose_mm_pass=cpu_max_first_dimension_decomposition:4,cpu_max_other_dimension_decomposition:6", "y",
           "`b`, f32[8, 4], has too large a size: it is 8, and must be at most 6"},
          {"decompose_mm_pass/decompose_addmm", "", "h", "factors would have to be applied: beta is 2, alpha 1"},
          {"normalization_aten_pass/normalize_cat", "", "j", "the dim, 1, counts from the front already"},
          {"normalization_aten_pass/normalize_split_with_sizes", "", "f", "the dim, 1, counts from the front already"},
          {"mm_plus_mm/mm_plus_mm", "", "s", "`q` is scaled by 3"},
          {"partitioned_scatter/partitioned_scatter", "", "put", "too few values are added: 2, and min_index_size is 4096"},
          {"post_grad_pass_pattern_1/pointless_cumsum_replacement", "", "k", "what is summed, `c`, is no constant (aten.full)"},
          {"post_grad_pass_pattern_1/pointless_cumsum_replacement", "", "n", "what `o` is filled with is rounded to i64[4, 4]: 0.5"},
          {"post_grad_pass_pattern_2/unfuse_bias_add_to_pointwise", "", "z", "`z` is f32[4, 4], and on the CPU the library adds the bias"}}},
        {R"(def forward(a: "f32[4, 8]", b: "f32[8, 4]", i: "i64[8]", p: "f32[4, 1]"):
    y: "f32[4, 4]" = aten.mm.default(a, b)
    r: "i64[7]" = aten.randperm.default(7)
    x: "f32[7, 4]" = aten.index.Tensor(b, [r])
    s: "f32[4, 8]" = aten.mul.Tensor(a, a)
    t: "f32[4, 1]" = aten.amax.default(s, [1], True)
    d: "f32[4, 8]" = aten.sub.Tensor(s, t)
    m: "f32[4, 8]" = aten.mul.Tensor(a, p)
    u: "f32[4]" = aten.amax.default(m, [1])
    w: "f32[4, 4]" = aten.view.default(y, [4, 4])
    return (y, x, d, u, w)
)",
         {{"pass_pattern_0/pad_mm", "", "y", "products are padded on the GPU only, and `a` is f32[4, 8], `b` f32[8, 4]"},
          {"pass_pattern_0/randperm_index", "", "x", "the permutation is one of 7, not of the rows of `b`, f32[8, 4]"},
          {"pass_pattern_1/mul_softmax_rescale", "", "d", "`a`, f32[4, 8], varies along a dim that is reduced, of [1]"}}},
        {R"(def forward(parts: "f32[4, 2]", more: "f32[4, 3]", n: "f32[4, 5]"):
    c: "f32[4, 9]" = torch__inductor_fx_passes_post_grad_cat_slice_cat([parts, more], 4)
    s: "f32[4, 5]" = torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace(n)
    e: "f32[4, 5]" = aten.exp.default(n)
    t: "f32[4, 5]" = torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace(e)
    return (c, s, e, t)
)",
         {{"lowering_calls/reuse_split_source", "", "s", "`s` reaches the output, and would come to share memory with `n`, an input"},
          {"lowering_calls/reuse_split_source", "", "t", "`t` reaches the output, and would come to share memory with `e`, which does, too"},
          {"lowering_calls/fold_cat_slice_cat", "", "c", "the repeated beginning, 4, is longer than `parts`, f32[4, 2]"}}},
    };
    return kGroups;
}

CompileOptions optionsOf(const QString& words) {
    CompileOptions options;
    for (const QString& word : words.split(' ', Qt::SkipEmptyParts)) {
        if (word == "cuda") options.target = Target::Cuda;
        else if (word == "parity") options.parity = true;
        else options.enabledPasses.push_back(parseOptionalPass(word.toStdString()).value());
    }
    return options;
}

}  // namespace

class PostGradRefusalsTest : public QObject {
    Q_OBJECT

    static void addRows(std::initializer_list<const std::vector<Group>*> tables) {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QString>("rule");
        QTest::addColumn<QString>("options");
        QTest::addColumn<QString>("node");
        QTest::addColumn<QString>("sentence");
        std::set<QString> names;
        for (const std::vector<Group>* all : tables)
            for (const Group& group : *all)
                for (const Row& row : group.rows) {
                    QString name = QString("%1 at %2 %3").arg(row.rule, row.node, row.options).trimmed();
                    while (!names.insert(name).second) name += "'";
                    QTest::newRow(qPrintable(name)) << QString(group.graph) << QString(row.rule) << QString(row.options) << QString(row.node) << QString(row.sentence);
                }
    }
    static const Node* nodeOf(const Module& module, const QString& name) {
        for (const Node& each : module.graph().nodes())
            if (each.name() == name.toStdString()) return &each;
        return nullptr;
    }

  private slots:
    void sentences_data() { addRows({&groups(), &writes()}); }
    void sentences() {
        QFETCH(QString, graph);
        QFETCH(QString, rule);
        QFETCH(QString, options);
        QFETCH(QString, node);
        QFETCH(QString, sentence);
        auto module = parseText(graph.toStdString());
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        const Snapshot before(std::move(*module));
        const Node* found = nodeOf(*before, node);
        QVERIFY(found);
        const std::string passName = rule.section('/', 0, 0).toStdString(), ruleName = rule.section('/', 1).toStdString();
        const auto passes = pipeline();
        const auto pass = std::find_if(passes.begin(), passes.end(), [&](const Pass& one) { return one.name == passName; });
        QVERIFY(pass != passes.end());
        WatchedNode watched{"", found->id(), {}};
        const Step step = runPass(*pass, before, optionsOf(options), {}, nullptr, nullptr, &watched);
        QVERIFY2(step.info.state != StepState::Failed, step.info.error.c_str());
        for (const RewriteInfo& rewrite : step.rewrites) QVERIFY2(rewrite.nodeId != found->id() || rewrite.rule != ruleName, "the rule applies");
        QStringList said;
        for (const Refusal& one : watched.refusals)
            if (one.rule == ruleName) said << QString::fromStdString(one.why);
        QCOMPARE(said, QStringList(sentence));
    }

    void conditionsOfRules_data() { addRows({&conditions()}); }
    void conditionsOfRules() {
        QFETCH(QString, graph);
        QFETCH(QString, rule);
        QFETCH(QString, options);
        QFETCH(QString, node);
        QFETCH(QString, sentence);
        const auto module = parseText(graph.toStdString());
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        Node* found = const_cast<Node*>(nodeOf(**module, node));
        QVERIFY(found);
        const Rule* wanted = nullptr;
        for (const RuleTable& table : ruleTables())
            for (const Rule& one : table.rules)
                if (rule == QString::fromStdString(std::string(table.pass) + "/" + std::string(one.name))) wanted = &one;
        QVERIFY(wanted);
        const Explanation why = explainRule(*wanted, *found, optionsOf(options));
        if (why.matched) {
            const auto applied = applyRuleAt(*wanted, *found, optionsOf(options));
            QVERIFY2(applied, applied ? "" : applied.error().text().c_str());
            QCOMPARE(QString::fromStdString(*applied), sentence);
        } else {
            QCOMPARE(QString::fromStdString(why.reason), sentence);
        }
    }
};

QTEST_GUILESS_MAIN(PostGradRefusalsTest)
#include "post_grad_refusals_test.moc"
