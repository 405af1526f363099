#pragma once
// Programs that run graphs, in f64 so that their derivatives can be held against differences.
#include <string>

namespace cutaway::testing {

inline const std::string kCond = R"fx(def forward(p: "b8[]", x: "f64[3, 2]", w: "f64[2, 4]"):
    c = higher_order.cond(p, yes, no, [x, w])
    a: "f64[3, 4]" = c[0]
    b: "f64[2]" = c[1]
    s: "f64[3, 4]" = aten.sin.default(a)
    t: "f64[]" = aten.sum.default(b)
    r: "f64[3, 4]" = aten.mul.Tensor(s, t)
    return (r,)

def yes(x: "f64[3, 2]", w: "f64[2, 4]"):
    m: "f64[3, 4]" = aten.mm.default(x, w)
    e: "f64[3, 4]" = aten.tanh.default(m)
    o: "f64[2]" = aten.sum.dim_IntList(x, [0])
    return (e, o)

def no(x: "f64[3, 2]", w: "f64[2, 4]"):
    m: "f64[3, 4]" = aten.full.default([3, 4], 2.5, dtype=torch.float64)
    v: "f64[2, 4]" = aten.exp.default(w)
    u: "f64[4]" = aten.sum.dim_IntList(v, [0])
    n: "f64[3, 4]" = aten.mul.Tensor(m, u)
    o: "f64[2]" = aten.mean.dim(x, [0])
    return (n, o)
)fx";
inline const std::string kNested = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, outer, inner, [p, x])
    a: "f64[4]" = c[0]
    r: "f64[4]" = aten.mul.Tensor(a, x)
    return (r,)

def outer(p: "b8[]", x: "f64[4]"):
    q: "b8[]" = aten.logical_not.default(p)
    s: "f64[4]" = aten.sin.default(x)
    c = higher_order.cond(q, inner, inner, [q, s])
    a: "f64[4]" = c[0]
    return (a,)

    def inner(p: "b8[]", x: "f64[4]"):
        y: "f64[4]" = aten.mul.Tensor(x, x)
        return (y,)

def inner(p: "b8[]", x: "f64[4]"):
    y: "f64[4]" = aten.exp.default(x)
    return (y,)
)fx";
inline const std::string kMap = R"fx(def forward(p: "b8[]", x: "f64[3, 2]", w: "f64[2]"):
    c = higher_order.map_impl(body, [x], [w])
    a: "f64[3, 2]" = c[0]
    r: "f64[3, 2]" = aten.sin.default(a)
    return (r,)

def body(x: "f64[2]", w: "f64[2]"):
    y: "f64[2]" = aten.mul.Tensor(x, w)
    z: "f64[2]" = aten.mul.Tensor(y, x)
    return (z,)
)fx";
inline const std::string kMapOfProducts = R"fx(def forward(p: "b8[]", x: "f64[3, 2, 4]", w: "f64[4, 4]"):
    c = higher_order.map_impl(body, [x], [w])
    a: "f64[3, 2, 4]" = c[0]
    r: "f64[3, 2, 4]" = aten.sin.default(a)
    return (r,)

def body(x: "f64[2, 4]", w: "f64[4, 4]"):
    y: "f64[2, 4]" = aten.mm.default(x, w)
    return (y,)
)fx";
inline const std::string kScanOfScanned = R"fx(def forward(p: "b8[]", x: "f64[3, 2, 4]", w: "f64[4, 4]"):
    h: "f64[2, 4]" = aten.full.default([2, 4], 0.1, dtype=torch.float64)
    c = higher_order.scan(body, [h], [x], [w])
    b: "f64[3, 2, 4]" = c[1]
    d = higher_order.scan(body, [h], [b], [w])
    r: "f64[3, 2, 4]" = d[1]
    return (r,)

def body(h: "f64[2, 4]", x: "f64[2, 4]", w: "f64[4, 4]"):
    y: "f64[2, 4]" = aten.mm.default(h, w)
    z: "f64[2, 4]" = aten.add.Tensor(y, x)
    t: "f64[2, 4]" = aten.tanh.default(z)
    s: "f64[2, 4]" = aten.mul.Tensor(t, 1.0)
    return (t, s)
)fx";
inline const std::string kWhile = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 0, dtype=torch.int64)
    z: "f64[3]" = aten.zeros_like.default(x)
    c = higher_order.while_loop(more, body, [n, x, z], [w])
    a: "f64[3]" = c[1]
    b: "f64[3]" = c[2]
    r: "f64[3]" = aten.mul.Tensor(a, b)
    return (r,)

def more(n: "i64[]", x: "f64[3]", z: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 4)
    return t

def body(n: "i64[]", x: "f64[3]", z: "f64[3]", w: "f64[3]"):
    m: "i64[]" = aten.add.Tensor(n, 1)
    y: "f64[3]" = aten.mul.Tensor(x, w)
    s: "f64[3]" = aten.sin.default(y)
    u: "f64[3]" = aten.add.Tensor(z, s)
    return (m, s, u)
)fx";
inline const std::string kScan = R"fx(def forward(p: "b8[]", x: "f64[4, 2]", w: "f64[2]"):
    h: "f64[2]" = aten.cos.default(w)
    c = higher_order.scan(body, [h], [x], [w])
    a: "f64[2]" = c[0]
    b: "f64[4, 2]" = c[1]
    r: "f64[4, 2]" = aten.mul.Tensor(b, a)
    return (r,)

def body(h: "f64[2]", x: "f64[2]", w: "f64[2]"):
    y: "f64[2]" = aten.mul.Tensor(h, w)
    z: "f64[2]" = aten.add.Tensor(y, x)
    t: "f64[2]" = aten.tanh.default(z)
    s: "f64[2]" = aten.sin.default(t)
    return (t, s)
)fx";
inline const std::string kWhileUnread = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 7, dtype=torch.int64)
    c = higher_order.while_loop(more, body, [n, x], [w])
    a: "f64[3]" = c[1]
    b: "f64[3]" = c[1]
    e: "f64[3]" = aten.exp.default(a)
    r: "f64[3]" = aten.mul.Tensor(e, b)
    return (r,)

def more(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 4)
    return t

def body(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    m: "i64[]" = aten.add.Tensor(n, 1)
    y: "f64[3]" = aten.mul.Tensor(x, w)
    return (m, y)
)fx";
// The number of steps depends on what is differentiated; what is carried changes places.
inline const std::string kWhileByValue = R"fx(def forward(p: "b8[]", x: "f64[2]", w: "f64[2, 2]"):
    z: "f64[2]" = aten.ones_like.default(x)
    c = higher_order.while_loop(more, body, [x, z], [w])
    a: "f64[2]" = c[0]
    b: "f64[2]" = c[1]
    s: "f64[2]" = aten.sub.Tensor(a, b)
    return (s,)

def more(x: "f64[2]", z: "f64[2]", w: "f64[2, 2]"):
    v: "f64[2]" = aten.abs.default(z)
    u: "f64[]" = aten.sum.default(v)
    t: "b8[]" = aten.lt.Scalar(u, 9.0)
    return t

def body(x: "f64[2]", z: "f64[2]", w: "f64[2, 2]"):
    y: "f64[2]" = aten.mv.default(w, x)
    s: "f64[2]" = aten.sin.default(y)
    q: "f64[2]" = aten.mul.Tensor(z, 2.0)
    o: "f64[2]" = aten.add.Tensor(q, s)
    return (s, o)
)fx";
inline const std::string kScanOfScans = R"fx(def forward(p: "b8[]", x: "f64[3, 2]", w: "f64[2]"):
    h: "f64[2]" = aten.zeros_like.default(w)
    k: "i64[]" = aten.full.default([], 1, dtype=torch.int64)
    c = higher_order.scan(outer, [h, k], [x, x], [w])
    b: "f64[3, 2]" = c[2]
    d: "f64[3, 2, 2]" = c[3]
    s: "f64[2]" = aten.sum.dim_IntList(d, [0, 1])
    r: "f64[3, 2]" = aten.mul.Tensor(b, s)
    return (r,)

def outer(h: "f64[2]", k: "i64[]", x: "f64[2]", y: "f64[2]", w: "f64[2]"):
    e: "f64[2, 2]" = aten.expand.default(x, [2, 2])
    c = higher_order.scan(inner, [h], [e], [w, k])
    a: "f64[2]" = c[0]
    b: "f64[2, 2]" = c[1]
    m: "i64[]" = aten.add.Tensor(k, 1)
    s: "f64[2]" = aten.mul.Tensor(a, y)
    return (a, m, s, b)

    def inner(h: "f64[2]", x: "f64[2]", w: "f64[2]", k: "i64[]"):
        y: "f64[2]" = aten.mul.Tensor(h, w)
        z: "f64[2]" = aten.add.Tensor(y, x)
        v: "f64[2]" = aten.mul.Tensor(z, k)
        t: "f64[2]" = aten.tanh.default(v)
        u: "f64[2]" = aten.sin.default(t)
        return (t, u)
)fx";
// Linear in what is carried and in the items: a step backwards reads nothing but gradients.
inline const std::string kScanSum = R"fx(def forward(p: "b8[]", x: "f64[4, 2]", w: "f64[2]"):
    c = higher_order.scan(body, [w], [x], [])
    a: "f64[2]" = c[0]
    r: "f64[2]" = aten.exp.default(a)
    return (r,)

def body(h: "f64[2]", x: "f64[2]"):
    t: "f64[2]" = aten.add.Tensor(h, x)
    s: "f64[2]" = aten.clone.default(x)
    return (t, s)
)fx";
inline const std::string kLoopInLoop = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 0, dtype=torch.int64)
    c = higher_order.while_loop(more, body, [n, x], [w])
    a: "f64[3]" = c[1]
    r: "f64[3]" = aten.sin.default(a)
    return (r,)

def more(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 3)
    return t

def body(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    c = higher_order.while_loop(more, step, [n, x], [w])
    y: "f64[3]" = c[1]
    m: "i64[]" = aten.add.Tensor(n, 1)
    return (m, y)

    def more(n: "i64[]", x: "f64[3]", w: "f64[3]"):
        t: "b8[]" = aten.lt.Scalar(n, 3)
        return t

    def step(n: "i64[]", x: "f64[3]", w: "f64[3]"):
        m: "i64[]" = aten.add.Tensor(n, 1)
        y: "f64[3]" = aten.mul.Tensor(x, w)
        s: "f64[3]" = aten.sin.default(y)
        return (m, s)
)fx";
inline const std::string kAssociative = R"fx(def forward(p: "b8[]", x: "f64[4, 2]", w: "f64[4, 2]"):
    v: "f64[2]" = aten.sum.dim_IntList(w, [0])
    c = higher_order.associative_scan(both, [x, w], [v])
    a: "f64[4, 2]" = c[0]
    b: "f64[4, 2]" = c[1]
    s: "f64[4, 2]" = aten.sin.default(a)
    r: "f64[4, 2]" = aten.mul.Tensor(s, b)
    return (r,)

def both(a: "f64[2]", b: "f64[2]", c: "f64[2]", d: "f64[2]", v: "f64[2]"):
    m: "f64[2]" = aten.mul.Tensor(a, c)
    n: "f64[2]" = aten.mul.Tensor(m, v)
    k: "f64[2]" = aten.mul.Tensor(b, c)
    o: "f64[2]" = aten.add.Tensor(k, d)
    return (n, o)
)fx";
inline const std::string kAssociativeOfOne = R"fx(def forward(p: "b8[]", x: "f64[1, 4]", w: "f64[4]"):
    c = higher_order.associative_scan(product, [x], [])
    a: "f64[1, 4]" = c[0]
    r: "f64[1, 4]" = aten.mul.Tensor(a, w)
    return (r,)

def product(a: "f64[4]", b: "f64[4]"):
    m: "f64[4]" = aten.mul.Tensor(a, b)
    return (m,)
)fx";
inline const std::string kRandom = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, yes, yes, [x])
    a: "f64[4]" = c[0]
    return (a,)

def yes(x: "f64[4]"):
    r: "f64[4]" = aten.rand_like.default(x)
    y: "f64[4]" = aten.mul.Tensor(x, r)
    return (y,)
)fx";

// What a branch draws is drawn once, and its derivative reads it.
inline const std::string kDraws = R"fx(def forward(p: "b8[]", x: "f64[4]", y: "f64[4]"):
    c = higher_order.cond(p, yes, no, [x, y])
    a: "f64[4]" = c[0]
    b: "f64[4]" = c[1]
    s: "f64[4]" = aten.sin.default(b)
    return (a, s)

def yes(x: "f64[4]", y: "f64[4]"):
    r: "f64[4]" = aten.rand_like.default(x)
    m: "f64[4]" = aten.mul.Tensor(x, r)
    z: "f64[4]" = aten.mul.Tensor(m, y)
    return (z, m)

def no(x: "f64[4]", y: "f64[4]"):
    r: "f64[2, 4]" = aten.randn.default([2, 4], dtype=torch.float64)
    i: "i64[4]" = aten.randint.low(1, 9, [4])
    m: "f64[2, 4]" = aten.mul.Tensor(x, r)
    e: "f64[2, 4]" = aten.exp.default(m)
    z: "f64[4]" = aten.sum.dim_IntList(e, [0])
    q: "f64[4]" = aten.mul.Tensor(y, i)
    return (z, q)
)fx";
inline const std::string kOneDraws = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, yes, no, [x])
    a: "f64[4]" = c[0]
    return (a,)

def yes(x: "f64[4]"):
    s: "f64[4]" = aten.sin.default(x)
    return (s,)

def no(x: "f64[4]"):
    d = aten.native_dropout.default(x, 0.5, True)
    y: "f64[4]" = d[0]
    k: "b8[4]" = d[1]
    s: "f64[4]" = aten.mul.Tensor(y, x)
    return (s,)
)fx";
// A step's draws are of another dtype and another shape than what is carried, and one is not read backwards.
inline const std::string kDrawsInSteps = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 0, dtype=torch.int64)
    z: "f64[3]" = aten.zeros_like.default(x)
    c = higher_order.while_loop(more, body, [n, x, z], [w])
    a: "f64[3]" = c[1]
    b: "f64[3]" = c[2]
    r: "f64[3]" = aten.mul.Tensor(a, b)
    return (r,)

def more(n: "i64[]", x: "f64[3]", z: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 4)
    return t

def body(n: "i64[]", x: "f64[3]", z: "f64[3]", w: "f64[3]"):
    m: "i64[]" = aten.add.Tensor(n, 1)
    r: "f64[2, 3]" = aten.rand.default([2, 3], dtype=torch.float64)
    i: "i64[3]" = aten.randint.low(1, 3, [3])
    h: "f64[3]" = aten.randn.default([3], dtype=torch.float64)
    v: "f64[2, 3]" = aten.mul.Tensor(r, x)
    y: "f64[3]" = aten.sum.dim_IntList(v, [0])
    s: "f64[3]" = aten.sin.default(y)
    q: "f64[3]" = aten.mul.Tensor(w, i)
    e: "f64[3]" = aten.add.Tensor(s, h)
    d = aten.native_dropout.default(e, 0.3, True)
    f: "f64[3]" = d[0]
    g: "f64[3]" = aten.mul.Tensor(f, q)
    u: "f64[3]" = aten.add.Tensor(z, g)
    return (m, s, u)
)fx";
// The loop draws, and takes no step.
inline const std::string kDrawsInNoStep = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    n: "i64[]" = aten.full.default([], 9, dtype=torch.int64)
    c = higher_order.while_loop(more, body, [n, x], [])
    a: "f64[4]" = c[1]
    s: "f64[4]" = aten.sin.default(a)
    return (s,)

def more(n: "i64[]", x: "f64[4]"):
    t: "b8[]" = aten.lt.Scalar(n, 4)
    return t

def body(n: "i64[]", x: "f64[4]"):
    m: "i64[]" = aten.add.Tensor(n, 1)
    r: "f64[4]" = aten.rand_like.default(x)
    y: "f64[4]" = aten.mul.Tensor(x, r)
    return (m, y)
)fx";
// The branch draws in a branch of its own, which is not looked into.
inline const std::string kDrawsInside = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, outer, outer, [p, x])
    a: "f64[4]" = c[0]
    return (a,)

def outer(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, yes, yes, [x])
    a: "f64[4]" = c[0]
    return (a,)

    def yes(x: "f64[4]"):
        r: "f64[4]" = aten.rand_like.default(x)
        y: "f64[4]" = aten.mul.Tensor(x, r)
        return (y,)
)fx";
inline const std::string kAssociativeDraws = R"fx(def forward(p: "b8[]", x: "f64[4, 2]"):
    c = higher_order.associative_scan(both, [x], [])
    a: "f64[4, 2]" = c[0]
    return (a,)

def both(a: "f64[2]", b: "f64[2]"):
    r: "f64[2]" = aten.rand_like.default(a)
    m: "f64[2]" = aten.mul.Tensor(a, r)
    k: "f64[2]" = aten.add.Tensor(m, b)
    return (k,)
)fx";

}  // namespace cutaway::testing
