// Elements that land where an index says: index_put and its forms of one dim, scatter and its reductions, and the
// gradient of embedding. Where several land on one place they are taken in their order: the places are sorted.
#include <algorithm>
#include <array>
#include <cstring>

#include "engine/runtime/cuda/functions.h"

namespace cutaway::cuda {
namespace {

constexpr int kMostIndices = 8;

constexpr const char* kPlacesText = R"(
enum { REPLACE, ADD, MULTIPLY, MEAN, LARGEST, SMALLEST };
/// Entries are what an index names a place of, row by row; each has `inner` elements.
struct Job {
    Strided to, from;
    int rank, indices;
    long sizes[8], toStrides[8], fromStrides[8];
    int innerRank, landing, includeSelf, wraps, hasSkip, byFrequency;
    long innerSizes[8], innerTo[8], innerFrom[8];
    long entries, inner, skip;
    Strided index[8];
    long extent[8], step[8];
    double factor, number;
    long wholeFactor, wholeNumber;
    int hasNumber;
};
/// Where each entry lands; -1: nowhere.
extern "C" __global__ void findPlaces(Job job, long* places, int* fault) {
    for (long e = firstThread(); e < job.entries; e += allThreads()) {
        long place = 0, rest = e, at[8];
        for (int d = job.rank; d-- > 0;) {
            at[d] = rest % job.sizes[d];
            rest /= job.sizes[d];
            place += at[d] * job.toStrides[d];
        }
        bool skipped = false;
        for (int k = 0; k < job.indices; ++k) {
            long offset = 0;
            for (int d = 0; d < job.rank; ++d) offset += at[d] * job.index[k].strides[d];
            long i = loadWhole(job.index[k], offset);
            if (job.hasSkip && i == job.skip) skipped = true;
            if (job.wraps && i < 0) i += job.extent[k];
            if (i < 0 || i >= job.extent[k]) {
                if (fault) *fault = 1;
                skipped = true;
            }
            place += i * job.step[k];
        }
        places[e] = skipped ? -1 : place;
    }
}
FN bool isNan(double x) { return x != x; }
FN bool isNan(long) { return false; }
FN double factorOf(const Job& job, double) { return job.factor; }
FN long factorOf(const Job& job, long) { return job.wholeFactor; }
FN double numberOf(const Job& job, double) { return job.number; }
FN long numberOf(const Job& job, long) { return job.wholeNumber; }
FN double quotient(double sum, long count) { return sum / (double)count; }
FN long quotient(long a, long b) { const long q = a / b; return q - (a % b != 0 && a < 0); }
template <class S> FN void landed(int landing, bool first, S given, S& value) {
    if (first || landing == REPLACE) value = given;
    else if (landing == MULTIPLY) value *= given;
    else if (landing == ADD || landing == MEAN) value += given;
    else {
        const bool better = landing == LARGEST ? given > value : given < value;
        if (!isNan(value) && (better || isNan(given))) value = given;
    }
}
template <class S> FN void landAll(const Job& job, const unsigned long* keys, const unsigned* order) {
    for (long i = firstThread(); i < job.entries * job.inner; i += allThreads()) {
        const long first = i / job.inner, j = i % job.inner;
        const unsigned long key = keys[first];
        const long place = (long)(key ^ 0x8000000000000000ul);
        if (place < 0 || (first > 0 && keys[first - 1] == key)) continue;
        long innerTo = 0, innerFrom = 0, rest = j;
        for (int d = job.innerRank; d-- > 0;) {
            const long at = rest % job.innerSizes[d];
            rest /= job.innerSizes[d];
            innerTo += at * job.innerTo[d];
            innerFrom += at * job.innerFrom[d];
        }
        long together = 1;
        while ((job.byFrequency || job.landing == REPLACE) && first + together < job.entries && keys[first + together] == key)
            ++together;
        S value;
        load(job.to, place + innerTo, value);
        long count = job.includeSelf;
        for (long q = job.landing == REPLACE ? first + together - 1 : first; q < job.entries && keys[q] == key; ++q) {
            S given = numberOf(job, S(0));
            if (!job.hasNumber) {
                long from = innerFrom, left = order[q];
                for (int d = job.rank; d-- > 0;) {
                    from += left % job.sizes[d] * job.fromStrides[d];
                    left /= job.sizes[d];
                }
                load(job.from, from, given);
            }
            if (job.byFrequency) given = quotient(given, together);
            landed(job.landing, count == 0, (S)(given * factorOf(job, S(0))), value);
            ++count;
        }
        if (job.landing == MEAN && count > 1) value = quotient(value, count);
        store(job.to, place + innerTo, value);
    }
}
extern "C" __global__ void landReal(Job job, const unsigned long* keys, const unsigned* order) { landAll<double>(job, keys, order); }
extern "C" __global__ void landWhole(Job job, const unsigned long* keys, const unsigned* order) { landAll<long>(job, keys, order); }
extern "C" __global__ void clear(Strided to, long count) {
    for (long i = firstThread(); i < count; i += allThreads()) store(to, offsetOf(to, i), 0L);
}
)";
constexpr Family kPlaces{kPlacesText};

enum class PlacesLanding : int32_t { Replace, Add, Multiply, Mean, Largest, Smallest };

/// As the kernels have it.
struct PlacesJob {
    DeviceTensor to, from;
    int32_t rank = 0, indices = 0;
    int64_t sizes[kMostDims] = {}, toStrides[kMostDims] = {}, fromStrides[kMostDims] = {};
    int32_t innerRank = 0;
    PlacesLanding landing = PlacesLanding::Replace;
    int32_t includeSelf = 1, wraps = 0, hasSkip = 0, byFrequency = 0;
    int64_t innerSizes[kMostDims] = {}, innerTo[kMostDims] = {}, innerFrom[kMostDims] = {};
    int64_t entries = 1, inner = 1, skip = 0;
    DeviceTensor index[kMostIndices];
    int64_t extent[kMostIndices] = {}, step[kMostIndices] = {};
    double factor = 1, number = 0;
    int64_t wholeFactor = 1, wholeNumber = 0;
    int32_t hasNumber = 0;
};

PlacesLanding landingNamed(std::string_view reduce) {
    if (reduce == "sum" || reduce == "add") return PlacesLanding::Add;
    if (reduce == "prod" || reduce == "multiply") return PlacesLanding::Multiply;
    if (reduce == "mean") return PlacesLanding::Mean;
    if (reduce == "amax") return PlacesLanding::Largest;
    return reduce == "amin" ? PlacesLanding::Smallest : PlacesLanding::Replace;
}

/// What a call's operator makes of its arguments.
class PlacesPlan final : public LibraryPlan {
  public:
    PlacesPlan(const CtCall& call, CtNeeds& needs) : m_call(call), m_reader(call) {
        m_job.to = described(writtenBy(call));
        m_real = isFloatingType(m_job.to.dtype);
        const std::string op = functionalName();
        if (op == "aten.embedding_dense_backward.default") embeddingGradient();
        else if (op == "aten.index_put.default" || op == "aten._unsafe_index_put.default") indexPut();
        else if (op == "aten.put.default") putFlat();
        else if (op.starts_with("aten.scatter")) scatter();
        else oneDim();
        const bool ordered = m_job.landing == PlacesLanding::Largest || m_job.landing == PlacesLanding::Smallest;
        if (m_job.to.dtype == CT_U64 && ordered) throw LibraryRefusal("it compares integers with a sign");
        for (int d = 0; d < m_job.rank; ++d) m_job.entries *= m_job.sizes[d];
        for (int d = 0; d < m_job.innerRank; ++d) m_job.inner *= m_job.innerSizes[d];
        if (m_job.entries > INT32_MAX) throw LibraryRefusal("it takes up to 2^31 - 1 places");
        Room room(nullptr);
        layOut(room);
        needs.scratch = room.bytes();
    }

    void run(const LibraryRun& given) const override {
        PlacesJob job = m_job;
        job.to.data = writtenPlace(m_call, given);
        if (m_from >= 0) job.from.data = given.operands[m_from].data;
        for (int k = 0; k < job.indices; ++k) job.index[k].data = given.operands[m_indexOf[k]].data;
        const Launcher launch(kPlaces, given);
        if (m_self >= 0) copyElements(m_selfLike.at(given.operands[m_self].data), job.to, given);
        else launch.threads("clear", job.to.elements(), job.to, job.to.elements());
        if (job.entries * job.inner > 0) {
            Room room(given.scratch);
            const Rooms rooms = layOut(room);
            launch.threads("findPlaces", job.entries, job, rooms.places, launch.fault());
            DeviceTensor places;
            places.data = rooms.places;
            places.dtype = CT_I64;
            places.rank = 1;
            places.sizes[0] = job.entries;
            places.strides[0] = 1;
            const Sorted sorted = sortLines(places, 0, false, rooms.first, rooms.second, given);
            launch.threads(m_real ? "landReal" : "landWhole", job.entries * job.inner, job, sorted.keys, sorted.places);
        }
        copyResult(m_call, given);
    }

  private:
    struct Rooms {
        int64_t* places;
        Sorted first, second;
    };
    Rooms layOut(Room& room) const {
        Rooms rooms{};
        rooms.places = room.take<int64_t>(m_job.entries);
        rooms.first = sortedRoom(room, m_job.entries, rooms.second);
        return rooms;
    }
    std::string functionalName() const {
        std::string op = m_call.op;
        if (isInPlace(m_call)) op.erase(op.rfind('.') - 1, 1);
        return op;
    }
    DeviceTensor operand(const char* parameter) const { return described(m_call.operands[number(parameter)]); }
    int number(const char* parameter) const { return m_reader.operand(parameter).value(); }
    void takeSelf(const char* parameter = "self") {
        m_self = number(parameter);
        m_selfLike = described(m_call.operands[m_self]);
    }
    void takeSource(const char* parameter) {
        const CtArgument& given = *m_reader.find(parameter);
        if (given.kind == CT_OPERAND) {
            m_from = static_cast<int>(given.integer);
            m_job.from = described(m_call.operands[m_from]);
            return;
        }
        m_job.hasNumber = 1;
        m_job.number = given.kind == CT_REAL ? given.real : static_cast<double>(given.integer);
        m_job.wholeNumber = given.kind == CT_REAL ? static_cast<int64_t>(given.real) : given.integer;
    }
    int addIndex(int operand, int64_t extent, int64_t step) {
        if (m_job.indices == kMostIndices) throw LibraryRefusal("it takes up to 8 indices");
        const int k = m_job.indices++;
        m_indexOf[static_cast<size_t>(k)] = operand;
        m_job.index[k] = described(m_call.operands[operand]);
        if (m_job.index[k].dtype == CT_BOOL || m_job.index[k].dtype == CT_U8)
            throw LibraryRefusal("it takes no masks as indices");
        m_job.extent[k] = extent;
        m_job.step[k] = step;
        return k;
    }
    void addEntryDim(int64_t size, int64_t to, int64_t from) {
        if (m_job.rank == kMostDims) throw LibraryRefusal("it takes places of up to 8 dims");
        m_job.sizes[m_job.rank] = size;
        m_job.toStrides[m_job.rank] = to;
        m_job.fromStrides[m_job.rank++] = from;
    }
    void addInnerDim(int64_t size, int64_t to, int64_t from) {
        m_job.innerSizes[m_job.innerRank] = size;
        m_job.innerTo[m_job.innerRank] = to;
        m_job.innerFrom[m_job.innerRank++] = from;
    }

    /// (self, dim, index, src or value, reduce, include_self): a place an element.
    void scatter() {
        takeSelf();
        const int rank = m_call.operands[m_self].rank, dim = dimOf(m_reader, "dim", rank);
        takeSource(m_reader.find("src") != nullptr ? "src" : "value");
        if (std::string_view(m_call.op).starts_with("aten.scatter_add")) m_job.landing = PlacesLanding::Add;
        if (m_reader.find("reduce") != nullptr) m_job.landing = landingNamed(m_reader.text("reduce"));
        if (m_reader.find("include_self") != nullptr) m_job.includeSelf = m_reader.flag("include_self") ? 1 : 0;
        const DeviceTensor index = operand("index");
        const int k = addIndex(number("index"), m_job.to.sizes[dim], m_job.to.strides[dim]);
        if (index.elements() == 0) return addEntryDim(0, 0, 0);
        for (int d = 0; d < index.rank; ++d) {
            addEntryDim(index.sizes[d], d == dim ? 0 : m_job.to.strides[d], m_from >= 0 ? m_job.from.strides[d] : 0);
            m_job.index[k].strides[d] = index.strides[d];
        }
    }
    /// (self, dim, index, source or value, …): a place a slice.
    void oneDim() {
        const std::string op = functionalName();
        takeSelf();
        const int rank = m_call.operands[m_self].rank, dim = dimOf(m_reader, "dim", rank);
        takeSource(m_reader.find("source") != nullptr ? "source" : "value");
        if (op == "aten.index_add.default") {
            m_job.landing = PlacesLanding::Add;
            takeFactor("alpha");
        }
        if (op == "aten.index_reduce.default") {
            m_job.landing = landingNamed(m_reader.text("reduce"));
            m_job.includeSelf = m_reader.flag("include_self") ? 1 : 0;
        }
        const bool oneValue = m_from >= 0 && op == "aten.index_fill.int_Tensor";
        m_job.wraps = op.starts_with("aten.index_fill") ? 1 : 0;
        const DeviceTensor index = operand("index");
        const int k = addIndex(number("index"), m_job.to.sizes[dim], m_job.to.strides[dim]);
        // Slices without elements are not looked at.
        if (m_job.to.elements() == 0 && (m_from < 0 || m_call.operands[m_from].rank > 1)) return addEntryDim(0, 0, 0);
        const auto from = [&](int d) { return m_from < 0 || oneValue ? 0 : m_job.from.strides[d]; };
        addEntryDim(index.sizes[0], 0, from(dim));
        m_job.index[k].strides[0] = index.strides[0];
        for (int d = 0; d < m_job.to.rank; ++d)
            if (d != dim) addInnerDim(m_job.to.sizes[d], m_job.to.strides[d], from(d));
    }
    void takeFactor(const char* parameter) {
        const CtArgument* const given = m_reader.find(parameter);
        if (given == nullptr) return;
        m_job.factor = given->kind == CT_REAL ? given->real : static_cast<double>(given->integer);
        m_job.wholeFactor = given->kind == CT_REAL ? static_cast<int64_t>(given->real) : given->integer;
    }
    /// (self, indices, values, accumulate)
    void indexPut() {
        takeSelf();
        if (m_reader.flag("accumulate")) m_job.landing = PlacesLanding::Add;
        m_job.wraps = 1;
        const CtArgument& items = *m_reader.find("indices");
        // The indices' own dims, which broadcast; they stand where the first index does if all are side by side.
        int64_t shape[kMostDims];
        int shapeRank = 0, first = -1, last = -1, given = 0;
        for (int64_t i = 0; i < items.integer; ++i) {
            if (items.items[i].kind != CT_OPERAND) continue;
            if (first < 0) first = static_cast<int>(i);
            last = static_cast<int>(i);
            ++given;
            const CtTensor& tensor = m_call.operands[items.items[i].integer];
            if (tensor.rank > kMostDims) throw LibraryRefusal("an index has more than 8 dims");
            for (; shapeRank < tensor.rank; ++shapeRank) {
                std::copy_backward(shape, shape + shapeRank, shape + shapeRank + 1);
                shape[0] = 1;
            }
            for (int d = 0; d < tensor.rank; ++d) {
                int64_t& size = shape[shapeRank - tensor.rank + d];
                if (size == 1) size = tensor.sizes[d];
            }
        }
        if (given == 0) throw LibraryRefusal("it needs an index");
        const bool together = last - first + 1 == given;
        const int before = together ? first : 0, rank = m_call.operands[m_self].rank;
        const auto isIndexed = [&](int d) { return d < items.integer && items.items[d].kind == CT_OPERAND; };
        // Sizes of what is put: dims before the indices, theirs, those behind.
        DeviceTensor part;
        part.rank = 0;
        const auto add = [&](int64_t size) {
            if (part.rank == kMostDims) throw LibraryRefusal("what is put has more than 8 dims");
            part.sizes[part.rank++] = size;
        };
        std::vector<int> behind, ahead;
        for (int d = 0; d < rank; ++d)
            if (!isIndexed(d)) (d < before ? ahead : behind).push_back(d);
        for (const int d : ahead) add(m_job.to.sizes[d]);
        for (int d = 0; d < shapeRank; ++d) add(shape[d]);
        for (const int d : behind) add(m_job.to.sizes[d]);
        if (part.rank == 0) add(1);
        takeSource("values");
        const DeviceTensor values = broadcastTo(m_job.from, part);
        int at = static_cast<int>(ahead.size());
        for (int d = 0; d < shapeRank; ++d, ++at) addEntryDim(shape[d], 0, values.strides[at]);
        if (shapeRank == 0) addEntryDim(1, 0, 0);
        at = 0;
        for (const int d : ahead) addInnerDim(m_job.to.sizes[d], m_job.to.strides[d], values.strides[at++]);
        at += shapeRank;
        for (const int d : behind) addInnerDim(m_job.to.sizes[d], m_job.to.strides[d], values.strides[at++]);
        for (int i = 0; i < items.integer; ++i) {
            if (!isIndexed(i)) continue;
            const int operand = static_cast<int>(items.items[i].integer);
            const DeviceTensor index = described(m_call.operands[operand]);
            const int k = addIndex(operand, m_job.to.sizes[i], m_job.to.strides[i]);
            const int own = m_call.operands[operand].rank;
            for (int d = 0; d < m_job.rank; ++d) {
                const int from = d - (m_job.rank - own);
                m_job.index[k].strides[d] = from < 0 || index.sizes[from] == 1 ? 0 : index.strides[from];
            }
        }
    }
    /// (self, index, source, accumulate): row-major positions of all of self.
    void putFlat() {
        takeSelf();
        if (!isDense(m_job.to)) throw LibraryRefusal("it puts into tensors that lie row by row");
        if (m_reader.flag("accumulate")) m_job.landing = PlacesLanding::Add;
        m_job.wraps = 1;
        takeSource("source");
        flatEntries(operand("index"), m_job.from);
        const int k = addIndex(number("index"), m_job.to.elements(), 1);
        std::copy_n(operand("index").strides, kMostDims, m_job.index[k].strides);
    }
    void flatEntries(const DeviceTensor& index, const DeviceTensor& source) {
        for (int d = 0; d < index.rank; ++d) addEntryDim(index.sizes[d], 0, 0);
        if (!isDense(source)) throw LibraryRefusal("what is put lies row by row");
        int64_t step = 1;
        for (int d = index.rank; d-- > 0; step *= index.sizes[d]) m_job.fromStrides[d] = step;
    }
    static bool isDense(const DeviceTensor& tensor) {
        int64_t step = 1;
        for (int d = tensor.rank; d-- > 0; step *= tensor.sizes[d])
            if (tensor.sizes[d] > 1 && tensor.strides[d] != step) return false;
        return true;
    }
    /// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq): rows land at their words.
    void embeddingGradient() {
        m_job.landing = PlacesLanding::Add;
        m_job.byFrequency = m_reader.flag("scale_grad_by_freq") ? 1 : 0;
        m_job.hasSkip = 1;
        m_job.skip = m_reader.find("padding_idx")->integer;
        if (m_job.skip < 0) m_job.hasSkip = 0;
        takeSource("grad_output");
        const DeviceTensor index = operand("indices");
        const int rank = m_call.operands[number("indices")].rank;
        for (int d = 0; d < rank; ++d) addEntryDim(index.sizes[d], 0, m_job.from.strides[d]);
        if (rank == 0) addEntryDim(1, 0, 0);
        const int k = addIndex(number("indices"), m_job.to.sizes[0], m_job.to.strides[0]);
        for (int d = 0; d < rank; ++d) m_job.index[k].strides[d] = index.strides[d];
        addInnerDim(m_job.to.sizes[1], m_job.to.strides[1], m_job.from.strides[rank]);
    }

    const CtCall& m_call;
    CallReader m_reader;
    PlacesJob m_job;
    DeviceTensor m_selfLike;
    int m_self = -1, m_from = -1;  // operands; -1: none
    std::array<int, kMostIndices> m_indexOf{};
    bool m_real = true;
};

constexpr std::string_view kPlacesOps[] = {
    "aten.scatter.src",           "aten.scatter.value",       "aten.scatter.reduce",
    "aten.scatter.value_reduce",  "aten.scatter_add.default", "aten.scatter_reduce.two",
    "aten.index_reduce.default",  "aten.index_put.default",   "aten._unsafe_index_put.default",
    "aten.index_add.default",     "aten.index_copy.default",  "aten.index_fill.int_Scalar",
    "aten.index_fill.int_Tensor", "aten.put.default",         "aten.embedding_dense_backward.default",
};

}  // namespace

const Family* placesFamily() { return &kPlaces; }

std::unique_ptr<LibraryPlan> planPlaces(const CtCall& call, CtNeeds& needs) {
    std::string op = call.op;
    if (isInPlace(call)) op.erase(op.rfind('.') - 1, 1);
    if (std::find(std::begin(kPlacesOps), std::end(kPlacesOps), std::string_view(op)) == std::end(kPlacesOps))
        return nullptr;
    return std::make_unique<PlacesPlan>(call, needs);
}

}  // namespace cutaway::cuda
