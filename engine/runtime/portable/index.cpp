// Elements written to, or added at, places that tensors of indices name: index_put, the forms that index one dim, and
// the gradient of embedding. Slices are independent; within one, elements come in the order of the indices.
#include "engine/runtime/portable/find.h"

namespace cutaway::portable {
namespace {

/// What is put where: three groups of dims, of which the middle one is the indices'. Offsets of target and values.
struct Places {
    int64_t *before[2], *index[2], *after[2];
    int64_t counts[3] = {1, 1, 1};
};

/// Scratch memory, taken piece by piece.
class Room {
  public:
    explicit Room(char* memory) : m_next(memory) {}
    template <class T>
    T* take(int64_t count) {
        char* const here = m_next;
        m_next += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
        return reinterpret_cast<T*>(here);
    }

  private:
    char* m_next;
};
constexpr int64_t kPadding = 64;

/// Offsets of a group of dims, row by row; the number of them.
int64_t fillOffsets(const int64_t* sizes, const int64_t* strides, int32_t rank, int64_t* offsets) {
    Strided group;
    group.rank = std::max(rank, 1);
    std::copy_n(sizes, rank, group.sizes);
    std::copy_n(strides, rank, group.strides);
    const int64_t count = group.elements();
    for (int64_t i = 0; i < count; ++i) offsets[i] = group.offsetOf(i);
    return count;
}
int64_t countOf(const int64_t* sizes, int32_t rank) {
    int64_t count = 1;
    for (int32_t d = 0; d < rank; ++d) count *= sizes[d];
    return count;
}

/// body(place in the group before the index, first of a run of places in the group behind it, one behind its last) for
/// slices [begin, end), which are counted over both groups.
template <class Body>
void forSlices(const Places& p, int64_t begin, int64_t end, Body&& body) {
    const int64_t after = p.counts[2];
    while (begin < end) {
        const int64_t b = begin / after, first = begin % after, last = std::min(after, first + end - begin);
        body(b, first, last);
        begin += last - first;
    }
}
template <class Each>
void forPairs(const Run& run, const Places& p, Each&& each) {
    run.share(p.counts[0] * p.counts[2], [&](int64_t, int64_t begin, int64_t end) {
        forSlices(p, begin, end, [&](int64_t b, int64_t first, int64_t last) {
            for (int64_t i = 0; i < p.counts[1]; ++i) {
                const int64_t to = p.before[0][b] + p.index[0][i], from = p.before[1][b] + p.index[1][i];
                for (int64_t a = first; a < last; ++a) each(to + p.after[0][a], from + p.after[1][a]);
            }
        });
    });
}

void replace(const Run& run, const Places& p, const Strided& target, const Strided& values) {
    const int64_t bytes = bytesOf(target.dtype);
    forPairs(run, p, [&](int64_t to, int64_t from) { copyElement(bytes, values.at(from), target.at(to)); });
}
/// Sums stay in the compute type until all are added: `sums` has the target's elements, in places of its own.
template <class T>
void accumulate(const Run& run, const Places& p, T* sums, const Strided& values, T factor) {
    const bool scaled = factor != T(1);
    const auto add = [&](T& sum, T element) { sum = sumOf(sum, scaled ? productOf(factor, element) : element); };
    if (values.dtype == kDtypeOf<T>) {
        const auto* const elements = reinterpret_cast<const T*>(values.data);
        return forPairs(run, p, [&](int64_t to, int64_t from) { add(sums[to], elements[from]); });
    }
    forPairs(run, p, [&](int64_t to, int64_t from) {
        const auto element = loadOne<T>(values.dtype, values.at(from));
        add(sums[to], element);
    });
}
/// The tensor with its elements row by row.
Strided packed(Strided tensor) {
    int64_t stride = 1;
    for (int32_t d = tensor.rank; d-- > 0;) {
        tensor.strides[d] = stride;
        stride *= std::max<int64_t>(tensor.sizes[d], 1);
    }
    return tensor;
}

/// Puts values into a copy of self. locate(target) gives the places for a target of those strides, in the room.
template <class Locate>
void put(const Run& run, const Strided& values, bool adds, const CtArgument* factor, Room room, Locate locate) {
    const Strided self = run.in(0), out = run.out();
    copyAll(run, self, out);
    if (!adds) return replace(run, locate(out, room), out, values);
    withNumber(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        const T alpha = factor ? numberOf<T>(*factor) : T(1);
        if (out.dtype == kDtypeOf<T>)
            return accumulate(run, locate(out, room), reinterpret_cast<T*>(out.data), values, alpha);
        const int64_t count = out.elements();
        T* const sums = room.take<T>(count);
        if (count > 0) loadAll(out, sums);
        accumulate(run, locate(packed(out), room), sums, values, alpha);
        if (count > 0)
            run.share(count, [&](int64_t, int64_t begin, int64_t end) { storeRange(out, begin, end, sums + begin); });
    });
}

// -- advanced indexing

/// The indices of a call by dim of self; masks as the coordinates where they hold.
struct IndexList {
    Strided index[CT_MAX_RANK];
    bool given[CT_MAX_RANK] = {};
    int32_t sizesRank = 0;
    int64_t sizes[CT_MAX_RANK] = {};  // those that all broadcast to
};

void widen(IndexList& list, const int64_t* sizes, int32_t rank) {
    const int32_t old = list.sizesRank;
    list.sizesRank = std::max(old, rank);
    int64_t joined[CT_MAX_RANK];
    for (int32_t d = 0; d < list.sizesRank; ++d) {
        const int32_t a = d - (list.sizesRank - old), b = d - (list.sizesRank - rank);
        const int64_t x = a < 0 ? 1 : list.sizes[a], y = b < 0 ? 1 : sizes[b];
        if (x != y && x != 1 && y != 1) throw Failure("the indices do not broadcast");
        joined[d] = x == 1 ? y : x;
    }
    std::copy_n(joined, list.sizesRank, list.sizes);
}
/// The coordinates where a mask holds, for each of its dims.
void addMask(IndexList& list, const Strided& self, const Strided& mask, int32_t first, int32_t rank, Room& room) {
    for (int32_t d = 0; d < rank; ++d)
        if (first + d >= self.rank || mask.sizes[d] != self.sizes[first + d])
            throw Failure("a mask does not have the shape of the dims it indexes");
    const int64_t all = mask.elements();
    auto* const coordinates = room.take<int64_t>(all * std::max(rank, 1));
    int64_t found = 0;
    for (int64_t i = 0; i < all; ++i) {
        if (*mask.at(mask.offsetOf(i)) == 0) continue;
        int64_t rest = i;
        for (int32_t d = rank; d-- > 0; rest /= mask.sizes[d]) coordinates[d * all + found] = rest % mask.sizes[d];
        ++found;
    }
    for (int32_t d = 0; d < rank; ++d) {
        Strided& index = list.index[first + d];
        index = Strided();
        index.data = reinterpret_cast<char*>(coordinates + d * all);
        index.dtype = CT_I64;
        index.sizes[0] = found;
        list.given[first + d] = true;
    }
    if (rank > 0) widen(list, &found, 1);
}
IndexList listOf(const Run& run, int32_t parameter, const Strided& self, Room& room) {
    const CtArgument& items = run.call->args[parameter];
    IndexList list;
    int32_t dim = 0;
    for (int64_t i = 0; i < items.integer; ++i) {
        if (items.items[i].kind != CT_OPERAND) {
            ++dim;
            continue;
        }
        const CtTensor& tensor = run.operands[items.items[i].integer];
        const Strided index(tensor);
        if (isMask(index)) {
            addMask(list, self, index, dim, tensor.rank, room);
            dim += tensor.rank;
            continue;
        }
        if (dim >= self.rank) throw Failure("more indices than dims");
        list.index[dim] = index;
        list.given[dim++] = true;
        widen(list, tensor.sizes, tensor.rank);
    }
    return list;
}

/// Which dims of self stand before the index's, in them, and behind.
struct Groups {
    int32_t before[CT_MAX_RANK], after[CT_MAX_RANK], beforeCount = 0, afterCount = 0;
};
Groups groupsOf(const Strided& self, const IndexList& list) {
    int32_t first = -1, last = -1, count = 0;
    for (int32_t d = 0; d < self.rank; ++d)
        if (list.given[d]) {
            if (first < 0) first = d;
            last = d;
            ++count;
        }
    const bool adjacent = count > 0 && last - first + 1 == count;
    Groups groups;
    for (int32_t d = 0; d < self.rank; ++d) {
        if (list.given[d]) continue;
        if (count == 0 || (adjacent && d < first)) groups.before[groups.beforeCount++] = d;
        else groups.after[groups.afterCount++] = d;
    }
    return groups;
}

/// Offsets in the target for each position of the indices. `counted`: a negative one counts from the end.
void locateIndices(const Strided& target, const IndexList& list, bool counted, int64_t count, int64_t* offsets) {
    std::fill_n(offsets, count, 0);
    for (int32_t d = 0; d < target.rank; ++d) {
        if (!list.given[d]) continue;
        const Strided index = broadcast(list.index[d], list.sizes, list.sizesRank);
        const Indices values(index);
        for (int64_t i = 0; i < count; ++i) {
            int64_t at = values[index.offsetOf(i)];
            if (at >= target.sizes[d] || at < (counted ? -target.sizes[d] : 0)) failOutside(at, d, target.sizes[d]);
            if (at < 0) at += target.sizes[d];
            offsets[i] += at * target.strides[d];
        }
    }
}
/// The values repeated to the indexed part, and where each goes.
Places placesOf(const Strided& target, const IndexList& list, bool counted, const Strided& given, Room& room) {
    const Groups groups = groupsOf(target, list);
    int64_t sizes[CT_MAX_RANK] = {}, strides[CT_MAX_RANK] = {};
    const int32_t rank = groups.beforeCount + list.sizesRank + groups.afterCount, behind = rank - groups.afterCount;
    if (rank > CT_MAX_RANK) throw Failure("the indexed part has more than 16 dims");
    for (int32_t d = 0; d < rank; ++d) {
        const int32_t own = d < groups.beforeCount ? groups.before[d] : d < behind ? -1 : groups.after[d - behind];
        sizes[d] = own < 0 ? list.sizes[d - groups.beforeCount] : target.sizes[own];
        strides[d] = own < 0 ? 0 : target.strides[own];
    }
    for (int32_t d = 0; d < given.rank; ++d) {
        const int32_t at = d + rank - given.rank;
        const bool fits = at < 0 ? given.sizes[d] == 1 : given.sizes[d] == 1 || given.sizes[d] == sizes[at];
        if (!fits) throw Failure("the values do not broadcast to the indexed part");
    }
    Strided flat = given;  // a leading dim of 1 more than there are dims
    if (given.rank > rank) {
        flat.rank = std::max(rank, 1);
        std::copy_n(given.sizes + (given.rank - flat.rank), flat.rank, flat.sizes);
        std::copy_n(given.strides + (given.rank - flat.rank), flat.rank, flat.strides);
    }
    const Strided values = broadcast(flat, sizes, rank);
    Places p;
    const int32_t firsts[] = {0, groups.beforeCount, behind, rank};
    int64_t** const tables[] = {p.before, p.index, p.after};
    for (int32_t g = 0; g < 3; ++g) {
        const int32_t first = firsts[g], length = firsts[g + 1] - first;
        p.counts[g] = countOf(sizes + first, length);
        for (int32_t side = 0; side < 2; ++side) {
            tables[g][side] = room.take<int64_t>(p.counts[g]);
            fillOffsets(sizes + first, side == 0 ? strides + first : values.strides + first, length, tables[g][side]);
        }
    }
    locateIndices(target, list, counted, p.counts[1], p.index[0]);
    return p;
}

/// (self, indices, values, accumulate)
void indexPut(const Run& run) {
    const Strided self = run.in(0), values = run.in(2);
    Room room(run.scratch);
    const IndexList list = listOf(run, 1, self, room);
    put(run, values, integerOf(*run.call, 3) != 0, nullptr, room,
        [&](const Strided& target, Room& rest) { return placesOf(target, list, true, values, rest); });
}
/// (self, indices): what indexPut would write to.
void indexTensor(const Run& run) {
    const Strided self = run.in(0), out = run.out();
    Room room(run.scratch);
    const IndexList list = listOf(run, 1, self, room);
    const Places p = placesOf(self, list, true, out, room);
    const int64_t bytes = bytesOf(self.dtype);
    forPairs(run, p, [&](int64_t from, int64_t to) { copyElement(bytes, self.at(from), out.at(to)); });
}
/// Where masks are among the indices the run lends memory for what they find.
void index(const Run& run) {
    if (run.parallel->results != nullptr) findIndexed(run);
    else indexTensor(run);
}
/// (weight, indices)
void embedding(const Run& run) {
    const Strided table = run.in(0), index = run.in(1), out = run.out();
    const int32_t last = out.rank - 1;
    const int64_t width = out.sizes[last], bytes = bytesOf(out.dtype);
    const Indices rows(index);
    run.share(index.elements(), [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = rows[index.offsetOf(i)], to = out.offsetOf(i, last);
            if (row < 0 || row >= table.sizes[0]) failOutside(row, 0, table.sizes[0]);
            for (int64_t k = 0; k < width; ++k)
                copyElement(bytes, table.at(row * table.strides[0] + k * table.strides[1]),
                            out.at(to + k * out.strides[last]));
        }
    });
}
/// A bound on the elements of each group of dims that are not indexed; at least 1, also for an empty tensor.
int64_t boundOf(const Strided& tensor, const bool* indexed) {
    int64_t bound = 1;
    for (int32_t d = 0; d < tensor.rank; ++d) bound *= indexed[d] ? 1 : std::max<int64_t>(tensor.sizes[d], 1);
    return bound;
}
/// Sums of the type that they are stored in need no memory of their own.
int64_t sumsBytes(const Strided& out) {
    bool inPlace = false;
    withNumber(out.dtype, [&](auto tag) { inPlace = out.dtype == kDtypeOf<decltype(tag)>; });
    return inPlace ? 0 : out.elements() * 16 + kPadding;
}
int64_t tableBytes(int64_t group, int64_t index) { return 16 * (2 * group + index) + 6 * kPadding; }
int64_t putScratch(const CtCall& call, int32_t) {
    const Strided self = operandOf(call, 0);
    const CtArgument& items = call.args[1];
    IndexList list;
    int64_t masks = 0, bytes = 0;
    int32_t dim = 0;
    for (int64_t i = 0; i < items.integer; ++i, ++dim) {
        if (items.items[i].kind != CT_OPERAND) continue;
        const CtTensor& tensor = call.operands[items.items[i].integer];
        const Strided index(tensor);
        const int32_t end = std::min(dim + (isMask(index) ? tensor.rank : 1), self.rank);
        std::fill(list.given + std::min(dim, end), list.given + end, true);
        if (!isMask(index)) {
            widen(list, tensor.sizes, tensor.rank);
            continue;
        }
        dim += tensor.rank - 1;
        masks = std::max(masks, index.elements());
        bytes += index.elements() * 8 * std::max(tensor.rank, 1) + kPadding;
    }
    const int64_t positions = countOf(list.sizes, list.sizesRank);
    return bytes + sumsBytes(self) +
           tableBytes(boundOf(self, list.given), std::max<int64_t>(positions, 1) * std::max<int64_t>(masks, 1));
}
int64_t indexScratch(const CtCall& call, int32_t tasks) {
    return call.results[0].sizes == nullptr ? 0 : putScratch(call, tasks);
}

// -- one dim: (self, dim, index, source or value)

/// The index of one dim as a list, and the source with an index's dim where self has `dim`.
struct OneDim {
    IndexList list;
    Strided values;
};
OneDim oneDimOf(const Run& run, const Strided& self, const Strided& values) {
    OneDim one;
    const int32_t dim = dimOf(*run.call, 1, self);
    const Strided index = run.in(2);
    one.list.index[dim] = index;
    one.list.given[dim] = true;
    widen(one.list, index.sizes, 1);
    one.values = values;
    return one;
}
/// Rows without elements are not looked at.
bool hasSlices(const Strided& self, const CtTensor& tensor) { return self.elements() > 0 || tensor.rank <= 1; }
void putSlices(const Run& run, const Strided& values, bool adds, const CtArgument* factor, bool counted) {
    const Strided self = run.in(0);
    const OneDim one = oneDimOf(run, self, values);
    if (!hasSlices(self, run.operands[run.call->args[0].integer])) return;
    put(run, values, adds, factor, Room(run.scratch),
        [&](const Strided& target, Room& rest) { return placesOf(target, one.list, counted, one.values, rest); });
}
void indexAdd(const Run& run) { putSlices(run, run.in(3), true, &run.call->args[4], false); }
void indexCopy(const Run& run) { putSlices(run, run.in(3), false, nullptr, false); }
/// The value in the dtype of self, as a tensor of one element.
void indexFill(const Run& run) {
    alignas(16) char element[16];
    Strided value;
    value.data = element;
    value.dtype = run.in(0).dtype;
    withNumber(value.dtype, [&](auto number) {
        if (run.call->args[3].kind != CT_OPERAND) number = numberOf<decltype(number)>(run.call->args[3]);
        else number = loadOne<decltype(number)>(run.in(3).dtype, run.in(3).data);
        storeOne(value.dtype, element, number);
    });
    putSlices(run, value, false, nullptr, true);
}
int64_t sliceScratch(const CtCall& call, int32_t) {
    const Strided self = operandOf(call, 0);
    bool indexed[CT_MAX_RANK] = {};
    if (const int32_t dim = dimOf(call, 1, self); dim >= 0 && dim < self.rank) indexed[dim] = true;
    return sumsBytes(self) + tableBytes(boundOf(self, indexed), operandOf(call, 2).elements());
}

/// (self, index, source, accumulate): row-major positions of all of self.
void putFlat(const Run& run) {
    const Strided self = run.in(0), index = run.in(1), source = run.in(2);
    put(run, source, integerOf(*run.call, 3) != 0, nullptr, Room(run.scratch), [&](const Strided& target, Room& rest) {
        Places p;
        for (int64_t** table : {p.before, p.after})
            for (int32_t side = 0; side < 2; ++side) *(table[side] = rest.take<int64_t>(1)) = 0;
        const int64_t count = p.counts[1] = index.elements(), all = self.elements();
        p.index[0] = rest.take<int64_t>(count);
        p.index[1] = rest.take<int64_t>(count);
        const Indices values(index);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t at = values[index.offsetOf(i)];
            if (at < -all || at >= all) failOutside(at, 0, all);
            p.index[0][i] = target.offsetOf(at < 0 ? at + all : at);
            p.index[1][i] = source.offsetOf(i);
        }
        return p;
    });
}
int64_t flatScratch(const CtCall& call, int32_t) {
    return sumsBytes(operandOf(call, 0)) + tableBytes(1, operandOf(call, 1).elements());
}

/// Whether rows are summed where they stay: memory for a table of words twice is a lot.
bool sumsInPlace(const Strided& out) {
    return (out.dtype == CT_F32 || out.dtype == CT_F64) && out.strides[1] == 1 && out.strides[0] == out.sizes[1];
}
/// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq): rows of the gradient added up at the rows of
/// the table that they were looked up in.
template <class T>
void addRows(const Run& run) {
    const Strided gradient = run.in(0), index = run.in(1), out = run.out();
    const int64_t rows = out.sizes[0], columns = out.sizes[1], lookups = index.elements();
    const int64_t padding = integerOf(*run.call, 3);
    const bool byFrequency = integerOf(*run.call, 4) != 0;
    Room room(run.scratch);
    T* const sums = sumsInPlace(out) ? reinterpret_cast<T*>(out.data) : room.take<T>(rows * columns);
    auto* const counts = room.take<int64_t>(byFrequency ? rows : 0);
    auto* const places = room.take<int64_t>(lookups);
    if (byFrequency) std::fill_n(counts, rows, 0);
    const Indices values(index);
    for (int64_t i = 0; i < lookups; ++i) {
        places[i] = values[index.offsetOf(i)];
        if (places[i] < 0 || places[i] >= rows) failOutside(places[i], 0, rows);
        if (byFrequency) ++counts[places[i]];
    }
    const int32_t last = gradient.rank - 1;
    run.share(columns, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t row = 0; row < rows; ++row)
            std::fill(sums + row * columns + begin, sums + row * columns + end, T{});
        for (int64_t i = 0; i < lookups; ++i) {
            if (places[i] == padding) continue;
            const int64_t from = gradient.offsetOf(i, last);
            for (int64_t first = begin; first < end; first += kChunk) {
                T chunk[kChunk], *const row = sums + places[i] * columns + first;
                const int64_t count = std::min(kChunk, end - first), stride = gradient.strides[last];
                load(gradient.dtype, gradient.at(from + first * stride), stride, count, chunk);
                for (int64_t c = 0; byFrequency && c < count; ++c) chunk[c] /= static_cast<T>(counts[places[i]]);
                for (int64_t c = 0; c < count; ++c) row[c] += chunk[c];
            }
        }
    });
    if (sumsInPlace(out)) return;
    run.share(rows, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            store(out.dtype, out.at(row * out.strides[0]), out.strides[1], columns, sums + row * columns);
    });
}
void embeddingBackward(const Run& run) {
    withFloat(run.out().dtype, [&](auto tag) { addRows<decltype(tag)>(run); });
}
int64_t embeddingScratch(const CtCall& call, int32_t) {
    const Strided out(call.results[0]);
    const int64_t sums = sumsInPlace(out) ? 0 : out.elements();
    return (sums + out.sizes[0] + operandOf(call, 1).elements()) * 8 + 3 * kPadding;
}

constexpr Function kIndexFunctions[] = {
    {"aten.index.Tensor", index, indexScratch},
    {"aten._unsafe_index.Tensor", index, indexScratch},
    {"aten.embedding.default", embedding},
    {"aten.index_put.default", indexPut, putScratch},
    {"aten._unsafe_index_put.default", indexPut, putScratch},
    {"aten.index_add.default", indexAdd, sliceScratch},
    {"aten.index_copy.default", indexCopy, sliceScratch},
    {"aten.index_fill.int_Scalar", indexFill, sliceScratch},
    {"aten.index_fill.int_Tensor", indexFill, sliceScratch},
    {"aten.put.default", putFlat, flatScratch},
    {"aten.embedding_dense_backward.default", embeddingBackward, embeddingScratch},
};

}  // namespace

std::span<const Function> indexFunctions() { return kIndexFunctions; }

}  // namespace cutaway::portable
