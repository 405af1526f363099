#pragma once
// Calls that neither generated kernels nor NVIDIA's libraries make, as CUDA kernels of our own: copies with a
// conversion, prefix sums, sorting and selection, attention, pooling, gradients of resampling, and elements that land
// where an index says. Each gives the same bits every time: places that several elements land at are sorted first. A
// family of kernels is one text, compiled when a call first needs it, once in a process. Sums are those of double or of
// 64-bit integers, rounded once.
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "engine/runtime/cuda/memory.h"
#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {

/// The library of these calls (libraries/library_list.h).
const CtLibrary& gpuFunctionsLibrary();

namespace cuda {

constexpr int kMostDims = 8;

/// A tensor as kernels are given it, by value. `dtype`: CtDType. Sizes and strides count elements.
struct DeviceTensor {
    void* data = nullptr;
    int32_t dtype = 0, rank = 0;
    int64_t sizes[kMostDims] = {}, strides[kMostDims] = {};

    int64_t elements() const;
    DeviceTensor at(const void* place) const;
};
/// Throws a refusal of complex numbers and of more dims. A tensor without dims has one of one element.
DeviceTensor described(const CtTensor& tensor);
/// Its last dims are those of `like`, where it has one element it is repeated. Throws if it does not broadcast.
DeviceTensor broadcastTo(const DeviceTensor& tensor, const DeviceTensor& like);
bool isFloatingType(int32_t dtype);

/// Numbers of the last three dims, which pooling and resampling slide over.
constexpr size_t kSpatial = 3;
using Three = std::array<int64_t, kSpatial>;
/// Those of a call with fewer dims are `missing` in front.
Three spatialOf(const int64_t* sizes, int leading, int spatial, int64_t missing);

/// A text of kernels, behind what all share.
struct Family {
    const char* text;
};

/// Enqueues kernels of a family. Throws what the driver or NVRTC says.
class Launcher {
  public:
    Launcher(const Family& family, const LibraryRun& run);
    /// So many threads in all, or fewer that walk further; blocks of 256.
    template <class... Args>
    void threads(const char* kernel, int64_t count, Args... arguments) const {
        constexpr int64_t kBlock = 256, kMostBlocks = int64_t{1} << 16;
        void* places[] = {&arguments...};
        launch(kernel, std::min((count + kBlock - 1) / kBlock, kMostBlocks), kBlock, places);
    }
    template <class... Args>
    void blocks(const char* kernel, int64_t count, unsigned threads, Args... arguments) const {
        constexpr int64_t kMostBlocks = int64_t{1} << 20;
        void* places[] = {&arguments...};
        launch(kernel, std::min(count, kMostBlocks), threads, places);
    }
    /// Where kernels say that an index is out of range; null: nobody asks.
    int32_t* fault() const { return m_fault; }

  private:
    void launch(const char* kernel, int64_t blocks, unsigned threads, void** arguments) const;
    const Family* m_family;
    void* m_stream;
    int32_t* m_fault;
};

/// The elements of `from` in the dtype of `to`, of the same sizes.
void copyElements(const DeviceTensor& from, const DeviceTensor& to, const LibraryRun& run);

/// Sums over all dims but one, such as a bias's gradient; `sums` has that dim alone.
void sumPositions(const DeviceTensor& x, const DeviceTensor& sums, int dim, const LibraryRun& run);

/// Scratch memory, piece by piece.
class Room {
  public:
    explicit Room(void* memory) : m_at(reinterpret_cast<uintptr_t>(memory)) {}
    template <class T>
    T* take(int64_t count) {
        const uintptr_t here = m_at;
        m_at += (static_cast<uintptr_t>(count) * sizeof(T) + 255) / 256 * 256;
        return reinterpret_cast<T*>(here);
    }
    int64_t bytes() const { return static_cast<int64_t>(m_at); }  // where it began at 0

  private:
    uintptr_t m_at;
};

/// Elements of lines in their order, as 64-bit keys and positions in the line.
struct Sorted {
    uint64_t* keys;
    uint32_t* places;
};
/// Takes what sortLines needs.
Sorted sortedRoom(Room& room, int64_t elements, Sorted& spare);
/// Each line of `x` along `dim` (-1: all of it as one) from the smallest element on, or from the largest; NaN is the
/// largest, equals keep their order. Returns the one of the two that holds the result.
Sorted sortLines(const DeviceTensor& x, int dim, bool descending, Sorted first, Sorted second, const LibraryRun& run);

const Family* attentionFamily();  // that for the largest heads
const Family* orderFamily();
const Family* scanFamily();
const Family* placesFamily();
const Family* poolFamily();
const Family* resampleFamily();
/// The programs, as NVRTC is given them.
std::vector<std::string> gpuFunctionSources();

// Each plans the calls of some operators, by name; null: none of its own.
std::unique_ptr<LibraryPlan> planAttention(const CtCall& call, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planCopy(const CtCall& call, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planOrder(const CtCall& call, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planScan(const CtCall& call, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planPlaces(const CtCall& call, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planPool(const CtCall& call, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planResample(const CtCall& call, CtNeeds& needs);

/// The dim that a parameter names, counted from the front.
int dimOf(const CallReader& call, const char* parameter, int rank);
/// An operator in place ("aten.index_put_.default").
bool isInPlace(const CtCall& call);
/// Where a call writes: its first operand, if it computes in place, else its result.
const CtTensor& writtenBy(const CtCall& call);
void* writtenPlace(const CtCall& call, const LibraryRun& run);
/// The result of a call in place is a copy of what it wrote.
void copyResult(const CtCall& call, const LibraryRun& run);

}  // namespace cuda
}  // namespace cutaway
