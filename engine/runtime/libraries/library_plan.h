#pragma once
// What a library written in C++ gives to be called through the C interface: a function that plans, and plans that run.
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/libraries/library.h"

namespace cutaway {

/// Why a library does not take a call, as a sentence; ends in CtLibrary::error.
class LibraryRefusal : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// One run of a plan: all memory is the caller's.
struct LibraryRun {
    const CtTensor* operands;
    const CtTensor* results;
    std::byte* packed;
    std::byte* scratch;
    const CtParallel* parallel;
};

/// A planned call. Never changes, so many threads may run it at once. What fails is thrown.
class LibraryPlan {
  public:
    LibraryPlan() = default;
    LibraryPlan(const LibraryPlan&) = delete;
    LibraryPlan& operator=(const LibraryPlan&) = delete;
    virtual ~LibraryPlan() = default;
    virtual void pack(const CtTensor*, std::byte*) const {}
    /// Whether runs read the operand where it lies, and whether packing does. One that is only packed need not be kept.
    virtual bool reads(int /*operand*/) const { return true; }
    virtual bool packs(int /*operand*/) const { return false; }
    /// Whether both pack operands of the same numbers alike, so that one packed memory serves them.
    virtual bool packsLike(const LibraryPlan& /*other*/) const { return false; }
    virtual void run(const LibraryRun& run) const = 0;
    /// The library's own names of the ways that it chose for its steps, as far as it tells them.
    virtual std::vector<std::string> implementations() const { return {}; }
};
using LibraryPlanner = std::unique_ptr<LibraryPlan> (*)(const CtCall& call, int threads, CtNeeds& needs);

/// Keeps the text of what `body` throws for CtLibrary::error; true if it throws nothing.
template <class Body>
bool toldIfThrown(Body&& body);
const char* lastLibraryError();
void setLibraryError(std::string text);

template <LibraryPlanner kPlan>
CtLibrary makeLibrary(const char* name) {
    CtLibrary library{};
    library.version = CT_LIBRARY_VERSION;
    library.bytes = sizeof(CtLibrary);
    library.name = name;
    library.plan = [](const CtCall* call, int32_t threads, CtNeeds* needs) -> CtPlan* {
        std::unique_ptr<LibraryPlan> made;
        *needs = {};
        return toldIfThrown([&] { made = kPlan(*call, threads, *needs); }) ? reinterpret_cast<CtPlan*>(made.release())
                                                                           : nullptr;
    };
    library.pack = [](const CtPlan* plan, const CtTensor* operands, void* packed) -> int32_t {
        const auto& own = *reinterpret_cast<const LibraryPlan*>(plan);
        return toldIfThrown([&] { own.pack(operands, static_cast<std::byte*>(packed)); }) ? 0 : 1;
    };
    library.run = [](const CtPlan* plan, const CtTensor* operands, const CtTensor* results, const void* packed,
                     void* scratch, const CtParallel* parallel) -> int32_t {
        const auto& own = *reinterpret_cast<const LibraryPlan*>(plan);
        auto* const constants = static_cast<std::byte*>(const_cast<void*>(packed));
        return toldIfThrown([&] {
            own.run({operands, results, constants, static_cast<std::byte*>(scratch), parallel});
        })
                   ? 0
                   : 1;
    };
    library.drop = [](CtPlan* plan) { delete reinterpret_cast<LibraryPlan*>(plan); };
    library.uses = [](const CtPlan* plan, int32_t operand) -> int32_t {
        const auto& own = *reinterpret_cast<const LibraryPlan*>(plan);
        return (own.reads(operand) ? CT_READS : 0) | (own.packs(operand) ? CT_PACKS : 0);
    };
    library.packAlike = [](const CtPlan* a, const CtPlan* b) -> int32_t {
        return reinterpret_cast<const LibraryPlan*>(a)->packsLike(*reinterpret_cast<const LibraryPlan*>(b)) ? 1 : 0;
    };
    library.error = lastLibraryError;
    return library;
}

template <class Body>
bool toldIfThrown(Body&& body) {
    try {
        body();
        return true;
    } catch (const std::bad_alloc&) {
        setLibraryError("there is not enough memory");
    } catch (const std::exception& error) {
        setLibraryError(error.what());
    }
    return false;
}

}  // namespace cutaway
