#pragma once
// Graphs, and what computes each of their calls.

namespace cutaway::testing {

struct CpuBackendCase {
    const char* name;
    const char* text;
    const char* kinds;  // of the calls, in order
};

inline constexpr CpuBackendCase kCpuBackendCases[] = {
    {"one product", R"(def forward(x: "f32[40, 30]", y: "f32[30]"):
    m = aten.mul.Tensor(x, y)
    return (m,))",
     "pointwise"},
    {"rows that repeat behind a layer",
     R"(def forward(x: "f32[2, 3, 8]", o: "f32[1, 3, 5]", w: "f32[5, 8]", b: "f32[5]"):
    y = mkldnn._linear_pointwise.binary(x, o, w, b, 'add')
    return (y,))",
     "library: _linear_pointwise (oneDNN)"},
    {"the magnitude of a negative number", R"(def forward(x: "f32[4]"):
    n = aten.full.default([4], -2, dtype = torch.int64)
    a = aten.abs.default(n)
    b = aten.add.Tensor(x, a)
    return (b,))",
     "pointwise"},
    {"a chain is one kernel", R"(def forward(x: "f32[40, 30]", y: "f32[40, 30]"):
    a = aten.add.Tensor(x, y)
    b = aten.exp.default(a)
    c = aten.mul.Tensor(b, x)
    return (c,))",
     "pointwise"},
    {"two results, one kernel", R"(def forward(x: "f32[7, 9]"):
    a = aten.exp.default(x)
    b = aten.mul.Tensor(a, a)
    return (a, b))",
     "pointwise"},
    {"transposed input", R"(def forward(x: "f32[6, 20][1, 6]", y: "f32[6, 20]"):
    a = aten.add.Tensor(x, y)
    return (a,))",
     "pointwise"},
    {"input with gaps", R"(def forward(x: "f32[4, 8][16, 1]", y: "f32[4, 8]"):
    a = aten.add.Tensor(x, y)
    return (a, x))",
     "pointwise"},
    {"views are arithmetic", R"(def forward(x: "f32[4, 6, 8]"):
    a = aten.mul.Tensor(x, x)
    b = aten.view.default(a, [24, 8])
    c = aten.permute.default(b, [1, 0])
    d = aten.exp.default(c)
    return (d,))",
     "pointwise"},
    {"slice, select, unsqueeze, expand", R"(def forward(x: "f32[5, 6, 7]"):
    a = aten.mul.Tensor(x, 3)
    b = aten.slice.Tensor(a, 1, 1, 5, 2)
    c = aten.select.int(b, 0, 2)
    d = aten.unsqueeze.default(c, 0)
    e = aten.expand.default(d, [3, 2, 7])
    f = aten.add.Tensor(e, e)
    return (f,))",
     "pointwise"},
    {"complex numbers in a part of a value", R"(def forward(x: "f32[3, 5, 24]"):
    a = aten.cumsum.default(x, 1)
    b = aten.view.default(a, [3, 5, 3, 2, 4])
    c = aten.permute.default(b, [2, 0, 3, 1, 4])
    d = aten.select.int(c, 0, 1)
    e = aten.view.default(d, [3, 2, 5, 2, 2])
    f = aten.view_as_complex.default(e)
    g = aten.abs.default(f)
    return (g,))",
     "portable: aten.cumsum.default, portable: aten.abs.default"},
    {"a loop innermost in one sum and not in another", R"(def forward(x: "f32[3, 4]"):
    u = aten.unsqueeze.default(x, 2)
    v = aten.exp.default(u)
    c = aten.cat.default([u, v], 2)
    s = aten.sum.dim_IntList(c, [])
    d = aten.cat.default([x, x])
    t = aten.sum.dim_IntList(d, [])
    r = aten.add.Tensor(s, t)
    return (r,))",
     "reduction"},
    {"row sum", R"(def forward(x: "f32[33, 100]"):
    s = aten.sum.dim_IntList(x, [1])
    return (s,))",
     "reduction"},
    {"column sum", R"(def forward(x: "f32[33, 100]"):
    s = aten.sum.dim_IntList(x, [0])
    return (s,))",
     "reduction"},
    {"sum of all, fused producer", R"(def forward(x: "f32[33, 10]"):
    a = aten.mul.Tensor(x, x)
    s = aten.sum.default(a)
    return (s,))",
     "reduction"},
    {"softmax by hand", R"(def forward(x: "f32[12, 37]"):
    m = aten.amax.default(x, [1], True)
    s = aten.sub.Tensor(x, m)
    e = aten.exp.default(s)
    t = aten.sum.dim_IntList(e, [1], True)
    d = aten.div.Tensor(e, t)
    return (d,))",
     "reduction"},
    {"layer norm by hand", R"(def forward(x: "f32[10, 48]", w: "f32[48]", b: "f32[48]"):
    vm = aten.var_mean.correction(x, [1], correction=0, keepdim=True)
    v = vm[0]
    m = vm[1]
    a = aten.add.Tensor(v, 1e-5)
    r = aten.rsqrt.default(a)
    s = aten.sub.Tensor(x, m)
    n = aten.mul.Tensor(s, r)
    p = aten.mul.Tensor(n, w)
    q = aten.add.Tensor(p, b)
    return (q, m, r))",
     "reduction"},
    {"batch statistics over three dims", R"(def forward(x: "f32[4, 5, 6, 7]"):
    vm = aten.var_mean.correction(x, [0, 2, 3], correction=0, keepdim=True)
    v = vm[0]
    m = vm[1]
    s = aten.sub.Tensor(x, m)
    d = aten.div.Tensor(s, v)
    r = aten.relu.default(d)
    return (r,))",
     "reduction"},
    {"matrix product between kernels", R"(def forward(x: "f32[8, 16]", w: "f32[16, 24]", b: "f32[24]"):
    r = aten.relu.default(x)
    m = aten.mm.default(r, w)
    a = aten.add.Tensor(m, b)
    return (a,))",
     "pointwise, library: mm (oneDNN), pointwise"},
    {"a transposed convolution that has the shape of a plain one",
     R"(def forward(x: "f32[2, 3, 4, 5]", w: "f32[3, 3, 2, 2]"):
    c = aten.convolution.default(x, w, None, [1, 1], [1, 1], [2, 2], True, [0, 0], 1)
    return (c,))",
     "library: convolution (oneDNN)"},
    {"addmm and a transposed weight", R"(def forward(x: "f32[8, 16]", w: "f32[24, 16]", b: "f32[24]"):
    t = aten.permute.default(w, [1, 0])
    m = aten.addmm.default(b, x, t)
    return (m,))",
     "library: addmm (oneDNN)"},
    {"a packed convolution and relu of it", R"(def forward(x: "f32[2, 3, 9, 8]", w: "f32[4, 3, 3, 2]", b: "f32[4]"):
    p = mkldnn._reorder_convolution_weight.default(w, [1, 0], [2, 1], [1, 2], 1, [2, 3, 9, 8])
    c = mkldnn._convolution_pointwise.default(x, p, b, [1, 0], [2, 1], [1, 2], 1, 'relu', [], '')
    return (c,))",
     "library: _convolution_pointwise (oneDNN)"},
    {"functions of packed convolutions",
     R"(def forward(x: "f32[2, 8, 7, 7][392, 1, 56, 8]", w: "f32[8, 8, 3, 3]", b: "f32[8]", d: "f32[8, 1, 3, 3]"):
    a = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'hardsigmoid', [], '')
    c = mkldnn._convolution_pointwise.default(x, w, None, [1, 1], [1, 1], [1, 1], 1, 'leaky_relu', [0.25], '')
    e = mkldnn._convolution_pointwise.default(x, d, b, [1, 1], [1, 1], [1, 1], 8, 'hardswish', [], '')
    f = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'gelu', [], 'none')
    g = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'gelu', [], 'tanh')
    h = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'hardtanh', [-1, 2.5], '')
    i = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'swish', [], '')
    j = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'sigmoid', [], '')
    k = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'tanh', [], '')
    return (a, c, e, f, g, h, i, j, k))",
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise (oneDNN), "
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise (oneDNN), "
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise (oneDNN), "
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise (oneDNN), "
     "library: _convolution_pointwise (oneDNN)"},
    {"sums with packed convolutions",
     R"(def forward(x: "f32[2, 8, 7, 7][392, 1, 56, 8]", w: "f32[8, 4, 3, 3]", o: "f32[2, 8, 7, 7][392, 1, 56, 8]", r: "f32[2, 8, 7, 7]", s: "f32[1, 8, 1, 1]"):
    a = mkldnn._convolution_pointwise.binary(x, o, w, None, [1, 1], [1, 1], [1, 1], 2, 'add', 1.0, 'relu', [], '')
    c = mkldnn._convolution_pointwise.binary(x, r, w, None, [1, 1], [1, 1], [1, 1], 2, 'sub', 1.0, None, [], None)
    e = mkldnn._convolution_pointwise.binary(x, s, w, None, [1, 1], [1, 1], [1, 1], 2, 'mul', 1.0, None, [], None)
    return (a, c, e))",
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise (oneDNN), "
     "library: _convolution_pointwise (oneDNN)"},
    {"a convolution added in place to what nobody else reads",
     R"(def forward(x: "f32[2, 8, 7, 7][392, 1, 56, 8]", w: "f32[8, 8, 3, 3]"):
    c = mkldnn._convolution_pointwise.default(x, w, None, [1, 1], [1, 1], [1, 1], 1, 'none', [], '')
    a = mkldnn._convolution_pointwise_.binary(c, x, w, None, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')
    return (a,))",
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise_ (oneDNN)"},
    {"a convolution added in place to what is read again",
     R"(def forward(x: "f32[2, 8, 7, 7][392, 1, 56, 8]", w: "f32[8, 8, 3, 3]"):
    c = mkldnn._convolution_pointwise.default(x, w, None, [1, 1], [1, 1], [1, 1], 1, 'none', [], '')
    a = mkldnn._convolution_pointwise_.binary(c, x, w, None, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')
    d = aten.mul.Tensor(c, 2)
    return (a, d))",
     "library: _convolution_pointwise (oneDNN), reference: mkldnn._convolution_pointwise_.binary, pointwise"},
    {"packed transposed convolutions",
     R"(def forward(x: "f32[2, 4, 5, 6]", w: "f32[4, 3, 3, 2]", v: "f32[4, 6, 2, 2]", b: "f32[6]", y: "f32[1, 2, 3, 3, 3]", u: "f32[2, 3, 2, 2, 2]"):
    a = mkldnn._convolution_transpose_pointwise.default(x, w, None, [1, 0], [1, 0], [2, 2], [1, 1], 2, 'relu', [], '')
    c = mkldnn._convolution_transpose_pointwise.default(x, v, b, [0, 0], [0, 0], [2, 1], [1, 2], 1, 'none', [], '')
    d = mkldnn._convolution_transpose_pointwise.default(y, u, None, [0, 0, 0], [0, 0, 0], [2, 2, 2], [1, 1, 1], 1, 'none', [], '')
    return (a, c, d))",
     "library: _convolution_transpose_pointwise (oneDNN), library: _convolution_transpose_pointwise (oneDNN), "
     "library: _convolution_transpose_pointwise (oneDNN)"},
    {"packed linear layers",
     R"(def forward(x: "f32[8, 16]", w: "f32[24, 16]", b: "f32[24]", y: "f32[2, 4, 16]", o: "f32[2, 4, 24]", r: "f32[1, 1, 24]", z: "f32[2, 4, 16][16, 32, 1]"):
    p = mkl._mkl_reorder_linear_weight(w, 8)
    a = mkl._mkl_linear(x, p, w, b, 8)
    c = mkldnn._linear_pointwise.default(y, w, b, 'gelu', [], 'tanh')
    d = mkldnn._linear_pointwise.binary(y, o, w, None, 'add')
    e = mkldnn._linear_pointwise.binary(y, r, w, b, 'sub')
    f = mkldnn._linear_pointwise.default(z, w, b, 'relu', [], '')
    return (a, c, d, e, f))",
     "library: _mkl_linear (oneDNN), library: _linear_pointwise (oneDNN), library: _linear_pointwise (oneDNN), "
     "library: _linear_pointwise (oneDNN), library: _linear_pointwise (oneDNN)"},
    {"packed calls of halves",
     R"(def forward(x: "bf16[2, 8, 7, 7][392, 1, 56, 8]", w: "bf16[16, 8, 3, 3]", b: "bf16[16]", o: "bf16[2, 16, 7, 7][784, 1, 112, 16]", y: "bf16[6, 32]", v: "bf16[16, 32]", z: "f16[6, 32]", u: "f16[16, 32]"):
    a = mkldnn._convolution_pointwise.default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'gelu', [], 'none')
    c = mkldnn._convolution_pointwise.binary(x, o, w, b, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')
    d = mkldnn._linear_pointwise.default(y, v, b, 'swish', [], '')
    e = mkldnn._linear_pointwise.default(z, u, None, 'tanh', [], '')
    return (a, c, d, e))",
     "library: _convolution_pointwise (oneDNN), library: _convolution_pointwise (oneDNN), "
     "library: _linear_pointwise (oneDNN), library: _linear_pointwise (oneDNN)"},
    {"reductions of what does not vary", R"(def forward(x: "f32[40, 1]", y: "f32[3, 37]"):
    c = aten.full.default([40, 1], 2.0, dtype=torch.float32, device=device(type='cpu'))
    e = aten.exp.default(c)
    s = aten.sum.dim_IntList(e, [0], True)
    a = aten.mul.Tensor(x, s)
    d = aten.full.default([3, 37], 0.5, dtype=torch.float32, device=device(type='cpu'))
    t = aten.sum.dim_IntList(d, [1], True)
    g = aten.argmax.default(d, 1, True)
    p = aten.prod.dim_int(d, 1, True)
    b = aten.mul.Tensor(y, t)
    return (a, b, g, p))",
     "reduction, reduction"},
    {"memory read as another dtype", R"(def forward(x: "f32[3, 40]", h: "bf16[40]"):
    i = aten.view.dtype(x, torch.int32)
    s = aten.bitwise_and.Scalar(i, 8388607)
    a = aten.relu.default(x)
    b = aten.view.dtype(a, torch.int16)
    c = aten.add.Tensor(b, 1)
    d = aten.view.dtype(h, torch.int16)
    e = aten.mul.Tensor(d, 3)
    return (s, c, e))",
     "pointwise, pointwise, pointwise"},
    {"addmm of a bias that is spread over memory", R"(def forward(x: "f32[8, 16]", w: "f32[24, 16]", b: "f32[24][0]"):
    t = aten.t.default(w)
    m = aten.addmm.default(b, x, t)
    return (m,)
)",
     "library: addmm (oneDNN)"},
    {"addmm adds whatever broadcasts",
     R"(def forward(x: "f32[8, 16]", w: "f32[16, 24]", n: "f32[8, 24]", c: "f32[8, 1]", r: "f32[1, 24]", o: "f32[1]", b: "f32[24]"):
    k = aten.addmm.default(n, x, w)
    l = aten.addmm.default(c, x, w)
    m = aten.addmm.default(r, x, w)
    p = aten.addmm.default(o, x, w)
    q = aten.addmm.default(b, x, w, beta=2, alpha=0.5)
    t = aten.permute.default(n, [1, 0])
    u = aten.permute.default(t, [1, 0])
    v = aten.addmm.default(u, x, w, beta=0)
    return (k, l, m, p, q, v))",
     "library: addmm (oneDNN), library: addmm (oneDNN), library: addmm (oneDNN), library: addmm (oneDNN), library: addmm (oneDNN), library: addmm (oneDNN)"},
    {"integers wrap", R"(def forward(x: "i64[50]", y: "i64[50]"):
    a = aten.mul.Tensor(x, 9223372036854775807)
    b = aten.add.Tensor(a, y)
    return (b,))",
     "pointwise"},
    {"bfloat16", R"(def forward(x: "bf16[6, 33]", y: "bf16[33]"):
    a = aten.mul.Tensor(x, y)
    return (a,))",
     "pointwise"},
    {"float16", R"(def forward(x: "f16[6, 33]", y: "f16[33]"):
    a = aten.add.Tensor(x, y)
    return (a,))",
     "pointwise"},
    {"a negative number next to bytes", R"(def forward(x: "u8[40]"):
    r = aten.remainder.Scalar(x, -3)
    l = aten.lt.Scalar(x, -3)
    c = aten.clamp_max.default(x, -3)
    return (r, l, c))",
     "pointwise"},
    {"comparison and choice", R"(def forward(x: "f32[6, 33]", y: "f32[33]"):
    c = aten.gt.Tensor(x, y)
    w = aten.where.self(c, x, y)
    return (w, c))",
     "pointwise"},
    {"empty", R"(def forward(x: "f32[0, 3]", y: "f32[3]"):
    a = aten.add.Tensor(x, y)
    s = aten.sum.dim_IntList(a, [0])
    return (a, s))",
     "reduction"},
    {"no dims", R"(def forward(x: "f32[]", y: "f32[]"):
    a = aten.add.Tensor(x, y)
    return (a,))",
     "pointwise"},
    {"input returned", R"(def forward(x: "f32[3]"):
    return (x,))",
     ""},
    {"shared by two products", R"(def forward(x: "f32[8, 8]", y: "f32[8, 8]"):
    a = aten.mul.Tensor(x, 2)
    b = aten.mm.default(a, y)
    c = aten.mm.default(y, a)
    d = aten.add.Tensor(b, c)
    return (d,))",
     "pointwise, library: mm (oneDNN), library: mm (oneDNN), pointwise"},
};

}  // namespace cutaway::testing
