// einsum: products of tensors with named dims, expanded pair by pair into batched matrix products.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

// Labels count capital letters first, then small ones; the ellipsis is one more.
constexpr int kLetters = 52, kEllipsis = 52;
using Labels = std::vector<int>;

/// "ij...k" as labels. Spaces do not count.
Result<Labels> labelsOf(const InferContext& c, std::string_view text) {
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
        const char letter = text[i];
        if (letter == ' ') continue;
        if (letter == '.') {
            if (text.substr(i, 3) != "..." || std::find(labels.begin(), labels.end(), kEllipsis) != labels.end())
                return c.fail("a '.' stands only in one '...' per tensor");
            labels.push_back(kEllipsis);
            i += 2;
        } else if (letter >= 'A' && letter <= 'Z') {
            labels.push_back(letter - 'A');
        } else if (letter >= 'a' && letter <= 'z') {
            labels.push_back(letter - 'a' + 26);
        } else {
            return c.fail(std::string("'") + letter + "' is not a label");
        }
    }
    return labels;
}

/// The equation against the tensors it is for: every dim of the product has a place, the result's dims first.
struct Equation {
    std::vector<Labels> operands;
    int64_t ellipsis = 0;  // dims that '...' stands for at most
    int64_t outDims = 0, dims = 0;
    int64_t ellipsisPlace = -1;
    std::vector<int64_t> place = std::vector<int64_t>(kLetters, -1);
};
Result<std::pair<std::string_view, std::optional<std::string_view>>> sides(const InferContext& c,
                                                                           std::string_view text) {
    const size_t arrow = text.find("->");
    if (arrow == std::string_view::npos) {
        if (text.find('>') != std::string_view::npos || text.find('-') != std::string_view::npos)
            return c.fail("'->' is incomplete");
        return std::pair(text, std::optional<std::string_view>());
    }
    return std::pair(text.substr(0, arrow), std::optional(text.substr(arrow + 2)));
}
/// Places of the result's labels: as written, or those that occur once in the order of letters.
Result<void> placeResult(const InferContext& c, Equation& e, const std::vector<int>& counts,
                         std::optional<std::string_view> written, bool hasEllipsis) {
    if (!written) {
        if (hasEllipsis) {
            e.ellipsisPlace = 0;
            e.dims = e.ellipsis;
        }
        for (int label = 0; label < kLetters; ++label)
            if (counts[static_cast<size_t>(label)] == 1) e.place[static_cast<size_t>(label)] = e.dims++;
        return {};
    }
    CT_TRY(const Labels labels, labelsOf(c, *written));
    for (int label : labels) {
        if (label == kEllipsis) {
            e.ellipsisPlace = e.dims;
            e.dims += e.ellipsis;
            continue;
        }
        if (counts[static_cast<size_t>(label)] == 0) return c.fail("the result has a label that no tensor has");
        if (e.place[static_cast<size_t>(label)] != -1) return c.fail("the result has a label twice");
        e.place[static_cast<size_t>(label)] = e.dims++;
    }
    return {};
}
Result<Equation> readEquation(const InferContext& c, std::string_view text, const std::vector<Value>& tensors) {
    Equation e;
    CT_TRY(const auto parts, sides(c, text));
    std::vector<int> counts(kLetters, 0);
    bool hasEllipsis = false;
    std::string_view rest = parts.first;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const size_t comma = rest.find(',');
        if ((comma == std::string_view::npos) != (i + 1 == tensors.size()))
            return c.fail("the equation is not for " + std::to_string(tensors.size()) + " tensors");
        CT_TRY(Labels labels, labelsOf(c, rest.substr(0, comma)));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        int64_t named = 0;
        for (int label : labels) {
            if (label == kEllipsis) continue;
            ++named;
            ++counts[static_cast<size_t>(label)];
        }
        const bool open = named != static_cast<int64_t>(labels.size());
        const int64_t covered = tensors[i].rank() - named;
        if (open ? covered < 0 : covered != 0)
            return c.fail("tensor " + std::to_string(i) + " has " + std::to_string(tensors[i].rank()) +
                          " dims, not as many as its labels");
        hasEllipsis |= open;
        if (open) e.ellipsis = std::max(e.ellipsis, covered);
        e.operands.push_back(std::move(labels));
    }
    CT_TRY_VOID(placeResult(c, e, counts, parts.second, hasEllipsis));
    e.outDims = e.dims;
    if (e.ellipsisPlace < 0) {
        e.ellipsisPlace = e.dims;
        e.dims += e.ellipsis;
    }
    for (int label = 0; label < kLetters; ++label)
        if (counts[static_cast<size_t>(label)] > 0 && e.place[static_cast<size_t>(label)] == -1)
            e.place[static_cast<size_t>(label)] = e.dims++;
    return e;
}

/// A tensor with all dims of the product in their places; a label that occurs twice is the diagonal of its dims.
Value placed(Decomposition& d, const Equation& e, const Labels& labels, Value x) {
    std::vector<int64_t> order(static_cast<size_t>(e.dims), -1), dimOf(kLetters, -1);
    int64_t next = 0, named = 0;
    for (int label : labels) named += label != kEllipsis;
    const int64_t covered = x.rank() - named;
    for (int label : labels) {
        if (label == kEllipsis) {
            for (int64_t k = 0; k < covered; ++k)
                order[static_cast<size_t>(e.ellipsisPlace + e.ellipsis - covered + k)] = next++;
        } else if (int64_t& dim = dimOf[static_cast<size_t>(label)]; dim != -1) {
            const SymInt a = x.size(dim), b = x.size(next);
            if (differ(a, b))
                d.builder().fail(d.fail("a label stands for dims of sizes " + a.text() + " and " + b.text()));
            x = d.call("aten.movedim.int", {d.call("aten.diagonal.default", {x, 0, dim, next}), -1, dim});
        } else {
            dim = next;
            order[static_cast<size_t>(e.place[static_cast<size_t>(label)])] = next++;
        }
    }
    for (int64_t& dim : order)
        if (dim == -1) {
            x = unsqueeze(x, next);
            dim = next++;
        }
    return permute(x, order);
}

bool isOneAlong(const Value& x, int64_t dim) { return x.size(dim) == SymInt(1); }
std::vector<int64_t> joinedDims(std::initializer_list<const std::vector<int64_t>*> parts) {
    std::vector<int64_t> all;
    for (const auto* part : parts) all.insert(all.end(), part->begin(), part->end());
    return all;
}
/// The product of two tensors of equally many dims, summed over some: one batched matrix product.
Value pairProduct(Decomposition& d, Value left, Value right, const std::vector<int64_t>& summed) {
    if (summed.empty()) return left * right;
    std::vector<int64_t> batch, rows, columns;
    SymInt batchSize = 1, rowSize = 1, columnSize = 1, sumSize = 1;
    for (int64_t dim = 0; dim < left.rank(); ++dim) {
        const bool inLeft = !isOneAlong(left, dim), inRight = !isOneAlong(right, dim);
        if (std::find(summed.begin(), summed.end(), dim) != summed.end()) {
            if (inLeft && inRight) sumSize = sumSize * left.size(dim);
            else if (inLeft) left = sum(left, {dim}, true);
            else if (inRight) right = sum(right, {dim}, true);
        } else if (inLeft && inRight) {
            batch.push_back(dim);
            batchSize = batchSize * left.size(dim);
        } else if (inLeft) {
            rows.push_back(dim);
            rowSize = rowSize * left.size(dim);
        } else {
            columns.push_back(dim);
            columnSize = columnSize * right.size(dim);
        }
    }
    SymDims sizes;
    for (int64_t dim : batch) sizes.push_back(left.size(dim));
    for (int64_t dim : rows) sizes.push_back(left.size(dim));
    sizes.insert(sizes.end(), summed.size(), SymInt(1));
    for (int64_t dim : columns) sizes.push_back(right.size(dim));
    const std::vector<int64_t> order = joinedDims({&batch, &rows, &summed, &columns});
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    const Value a = reshape(permute(left, order), {batchSize, rowSize, sumSize});
    const Value b =
        reshape(permute(right, joinedDims({&batch, &summed, &columns, &rows})), {batchSize, sumSize, columnSize});
    const Value product = d.call("aten.bmm.default", {a, b});
    return permute(view(product, sizes), back);
}

/// Sums out what only these two tensors still have, and multiplies them.
Value contract(Decomposition& d, const Equation& e, Value a, Value b, std::vector<int64_t>& uses) {
    std::vector<int64_t> summed, ofA, ofB;
    for (int64_t dim = e.outDims; dim < e.dims; ++dim) {
        int64_t& count = uses[static_cast<size_t>(dim)];
        const bool inA = !isOneAlong(a, dim), inB = !isOneAlong(b, dim);
        if (inA && inB) {
            if (--count != 1) continue;
            summed.push_back(dim);
        } else if (count == 1 && (inA || inB)) {
            (inA ? ofA : ofB).push_back(dim);
        } else {
            continue;
        }
        count = 0;
    }
    if (!ofA.empty()) a = sum(a, ofA, true);
    if (!ofB.empty()) b = sum(b, ofB, true);
    return pairProduct(d, a, b, summed);
}

Values decomposeEinsum(Decomposition& d) {
    const auto types = read(d, d.tensors("tensors"));
    const auto path = read(d, d.integers("path"));
    if (!types || !path) return Value(d.builder(), nullptr);
    std::vector<Value> tensors = d.list("tensors");
    if (tensors.empty()) return refuse(d, "needs at least one tensor");
    const size_t count = tensors.size();
    const bool planned = !path->empty();
    if (planned && path->size() != 2 * (count - 1)) return refuse(d, "the path does not name a pair for every product");
    const std::string text = d.text("equation");
    const auto equation = read(d, readEquation(d, text, tensors));
    if (!equation) return Value(d.builder(), nullptr);
    const Equation& e = *equation;
    std::vector<int64_t> uses(static_cast<size_t>(e.dims), 0);
    for (size_t i = 0; i < count; ++i) {
        tensors[i] = placed(d, e, e.operands[i], tensors[i]);
        for (int64_t dim = 0; dim < e.dims; ++dim) uses[static_cast<size_t>(dim)] += !isOneAlong(tensors[i], dim);
    }
    if (d.builder().error()) return Value(d.builder(), nullptr);
    for (size_t step = 0; tensors.size() > 1; ++step) {
        auto first = static_cast<size_t>(planned ? std::min((*path)[2 * step], (*path)[2 * step + 1]) : 0);
        auto second = static_cast<size_t>(planned ? std::max((*path)[2 * step], (*path)[2 * step + 1]) : 1);
        if (first >= second || second >= tensors.size()) return refuse(d, "the path names tensors that are not there");
        const Value product = contract(d, e, tensors[first], tensors[second], uses);
        if (!product) return product;
        tensors.erase(tensors.begin() + static_cast<int64_t>(second));
        tensors.erase(tensors.begin() + static_cast<int64_t>(first));
        tensors.insert(planned ? tensors.end() : tensors.begin(), product);
    }
    if (e.dims == e.outDims) return tensors[0];
    if (count > 1) return view(tensors[0], SymDims(tensors[0].sizes().begin(), tensors[0].sizes().begin() + e.outDims));
    std::vector<int64_t> summed;
    for (int64_t dim = e.outDims; dim < e.dims; ++dim) summed.push_back(dim);
    return sum(tensors[0], summed, false);
}

constexpr OpDef kEinsumOps[] = {
    shorthand("aten.einsum.default(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", decomposeEinsum, R"(
'ij,jk->ik', [f32[2, 3], f32[3, 4]]
'bij,bjk->bik', [f32[5, 2, 3], f32[5, 3, 4]]
'ii->i', [f32[3, 3]]
'ii', [f32[3, 3]]
'iij->j', [f32[3, 3, 2]]
'bhqd,bhkd->bhqk', [f32[2, 3, 4, 5], f32[2, 3, 6, 5]]
'...ij,...jk->...ik', [f32[2, 1, 3, 4], f32[5, 4, 2]]
'ij->', [f32[3, 3]]
'i,j->ij', [f32[3], f32[4]]
'i,i->', [f32[3], f32[3]]
'ij,jk,kl->il', [f32[2, 3], f32[3, 4], f32[4, 5]]
'ij,jk,kl->il', [f32[2, 3], f32[3, 4], f32[4, 5]], path=[1, 2, 0, 1]
'ij,ij->i', [f32[2, 3], f32[2, 3]]
'ij,k->ijk', [f32[2, 3], f32[4]]
'bi,bj', [f32[2, 3], f32[2, 4]]
'ij->ji', [f32[2, 3]]
'ij, j -> i', [f32[2, 3], f32[1]]
'Ab,bC', [f64[2, 3], f64[3, 4]]
'i...->...', [f32[2, 3, 4]]
'ij,ik->j', [f32[2, 3], f32[2, 4]]
'ij,jk->ik', [bf16[2, 3], bf16[3, 4]]
'ij,jk->ik', [i64[2, 3], i64[3, 4]]
'ij,jk->ik', [f32[0, 3], f32[3, 4]]
)",
              Tag::Heavy),
};

}  // namespace

std::span<const OpDef> einsumOps() { return kEinsumOps; }

}  // namespace cutaway
