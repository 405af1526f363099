#include "engine/ops/linalg_rules.h"

namespace cutaway {

Value throughFactors(Derivation& d, const Value& p, const Value& l, const Value& u, const Value& gl, const Value& gu) {
    const SymInt rows = l.size(-2), columns = u.size(-1), least = l.size(-1);
    const bool tall = !(rows == least), wide = !(columns == least);
    const auto part = [&](const Value& x, int64_t dim, bool square) {
        if (!x) return x;
        return d.call("aten.slice.Tensor",
                      {x, dim, Argument(square ? SymInt(0) : least), Argument(square ? least : x.size(dim))});
    };
    const Value l1 = tall ? part(l, -2, true) : l, u1 = wide ? part(u, -1, true) : u;
    const Value gl1 = tall ? part(gl, -2, true) : gl, gu1 = wide ? part(gu, -1, true) : gu;
    const Value below = tall ? part(gl, -2, false) : Value(), right = wide ? part(gu, -1, false) : Value();
    Value lower, upper;
    if (gl1) lower = matmul(adjointOf(l1), gl1);
    if (right) {
        const Value moved = matmul(right, adjointOf(part(u, -1, false)));
        lower = lower ? lower - moved : -moved;
    }
    if (gu1) upper = matmul(gu1, adjointOf(u1));
    if (below) {
        const Value moved = matmul(adjointOf(part(l, -2, false)), below);
        upper = upper ? upper - moved : -moved;
    }
    const auto solved = [&](const Value& matrix, const Value& side, bool left) {
        if (left)
            return d.call("aten.linalg_solve_triangular.default", {adjointOf(matrix), side},
                          {{"upper", true}, {"unitriangular", true}});
        return d.call("aten.linalg_solve_triangular.default", {adjointOf(matrix), side},
                      {{"upper", false}, {"left", false}});
    };
    const Value inner = plus(lower ? triangle(lower, false, -1) : lower, upper ? triangle(upper, true) : upper);
    Value g = solved(l1, solved(u1, inner, false), true);
    const auto joined = [&](const Value& first, const Value& rest, int64_t dim) {
        return d.call("aten.cat.default", {Argument(std::vector<Argument>{first, rest}), dim});
    };
    const auto zeros = [&](const SymInt& height, const SymInt& width) {
        SymDims sizes(l.sizes().begin(), l.sizes().end() - 2);
        sizes.insert(sizes.end(), {height, width});
        return full(d.builder(), sizes, Scalar(int64_t{0}), l.dtype(), l.type().device);
    };
    if (wide) g = joined(g, right ? solved(l1, right, true) : zeros(least, columns - least), -1);
    if (tall) {
        Value rest = below ? solved(u1, below, false) : zeros(rows - least, least);
        if (wide) rest = joined(rest, zeros(rows - least, columns - least), -1);  // which is longer is not known
        g = joined(g, rest, -2);
    }
    return matmul(p, g);
}

Value packedFactors(Derivation& d, const Value& lower, const Value& upper) {
    const SymInt rows = d.in(0).size(-2), columns = d.in(0).size(-1);
    const auto padded = [&](const Value& x) {
        const SymInt right = columns - x.size(-1), below = rows - x.size(-2);
        if (right == SymInt(0) && below == SymInt(0)) return x;
        return d.call("aten.constant_pad_nd.default", {x, Argument(SymDims{0, right, 0, below}), 0});
    };
    return plus(lower ? padded(triangle(lower, false, -1)) : lower, upper ? padded(triangle(upper, true)) : upper);
}

void deriveLuSolve(Derivation& d) {
    const bool left = d.flag("left", true), adjoint = d.flag("adjoint");
    const Value y =
        d.call("aten.linalg_lu_solve.default", {d.in(0), d.in(1), d.dy()}, {{"left", left}, {"adjoint", !adjoint}});
    if (d.needs(2)) d.input(2) = y;
    if (!d.needs(0)) return;
    const Value x = d.out();
    const Value ofA = left      ? adjoint ? matmul(x, adjointOf(y)) : matmul(y, adjointOf(x))
                           : adjoint ? matmul(adjointOf(y), x)
                                : matmul(adjointOf(x), y);
    const Value parts = d.call("aten.lu_unpack.default", {d.in(0), d.in(1)});
    const Value p = parts[0], l = parts[1], u = parts[2];
    const Value inOrder = -matmul(transposeLast(p), ofA);
    d.input(0) =
        plus(triangle(matmul(inOrder, adjointOf(u)), false, -1), triangle(matmul(adjointOf(l), inOrder), true));
}

}  // namespace cutaway
