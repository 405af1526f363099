#pragma once
// A plugin's library as libraries are called here: in a process of its own, which sees tensors in memory that both
// share. Constants are copied there once; other operands, and results, in each run.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/libraries/plugin_rows.h"
#include "engine/ops/eval.h"
#include "engine/runtime/libraries/library_plan.h"
#include "engine/runtime/shared_memory.h"
#include "engine/support/plugin_process.h"

namespace cutaway {

/// Where a tensor of a call lies: constants 'c', other operands 'o', results 'r', nowhere '-'.
struct SharedPlace {
    char area = '-';
    uint64_t offset = 0, bytes = 0;
    Dims strides;  // as it lies there
};
/// What a request says of a call behind its kind and number (plugins/host/serve.h): of its operands, then its results.
PluginCall pluginCall(const PluginLibrary& library, const char* kind, const CtCall& call, int threads,
                      const std::vector<SharedPlace>& places);
/// The memory of an operand as it is passed: as it lies if its elements fill it, whatever the order of dims, else
/// row-major. Sizes that are not known yet (-1) count as any.
Dims passedStrides(const Dims& sizes, const Dims& strides);

class PluginCalls {
  public:
    /// One process for each library. Errors: memory, descriptors. The process starts with the first question.
    static Result<std::shared_ptr<PluginCalls>> create(PluginLibrary library);
    ~PluginCalls();
    PluginCalls(const PluginCalls&) = delete;
    PluginCalls& operator=(const PluginCalls&) = delete;

    /// Throws a LibraryRefusal with the library's sentence where it does not take the call, or with what became of its
    /// process.
    static std::unique_ptr<LibraryPlan> plan(const std::shared_ptr<PluginCalls>& calls, const CtCall& call, int threads,
                                             CtNeeds& needs);
    const PluginLibrary& library() const { return m_library; }

  private:
    friend class PluginPlan;
    /// Memory that the process has under `lent`; it grows, and what lies in it stays.
    struct Area {
        SharedMemory memory;
        int lent = -1;
        bool ownsLent = false;
        std::span<std::byte> bytes = {};
        std::shared_ptr<const void> owner = {};
        size_t used = 0;  // of constants
        std::byte* reserve(size_t wanted);
    };
    PluginCalls(PluginLibrary library, std::vector<Area> areas);
    std::string memoryText() const;

    PluginLibrary m_library;
    PluginProcess m_process;
    std::mutex m_mutex;
    std::vector<Area> m_areas;  // constants, operands, results
};

/// The value of a call of the interpreter's, its operands as they are there, laid out as its type says. Nullopt: the
/// library does not take it, and `refusal` says why. Errors: what became of its process.
Result<std::optional<TensorList>> computeByPlugin(const std::shared_ptr<PluginCalls>& calls, const Node& call,
                                                  const ValueSource& values, std::string& refusal);

/// Of the last call on this thread: how long all but the library's own work took, in microseconds.
double handedOverMicroseconds();

}  // namespace cutaway
