#pragma once
// A call that a library has planned, with its packed constants: shared by all who run the program, at once if they
// like.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/libraries/library.h"
#include "engine/runtime/device_memory.h"
#include "engine/runtime/libraries/library_plan.h"
#include "engine/runtime/libraries/owned_call.h"

namespace cutaway {

class PlannedCall {
  public:
    /// Error: the library's sentence that says why it does not take the call.
    static Result<std::unique_ptr<PlannedCall>> plan(const CtLibrary& library, std::unique_ptr<OwnedCall> call,
                                                     int threads);
    /// The same by a plugin's library, `name`: its plans are made by an object. They run as any other.
    using Planner = std::function<std::unique_ptr<LibraryPlan>(const CtCall& call, int threads, CtNeeds& needs)>;
    static Result<std::unique_ptr<PlannedCall>> planByPlugin(std::string name, const Planner& planner,
                                                             std::unique_ptr<OwnedCall> call, int threads);
    bool isPlugins() const { return !m_plugin.empty(); }
    ~PlannedCall();
    PlannedCall(const PlannedCall&) = delete;
    PlannedCall& operator=(const PlannedCall&) = delete;

    const OwnedCall& call() const { return *m_call; }
    /// Bytes, aligned to 64, that each run needs of its own.
    int64_t scratchBytes() const { return m_needs.scratch; }
    /// Constant operands in the library's own layouts, in memory of the device that holds them; before the first run.
    Result<void> pack(std::span<const void* const> operands, DeviceMemory& device);
    /// Packed memory of another call on the same constants in place of its own, if both pack alike.
    bool sharePacked(const PlannedCall& other);
    bool isPacked() const { return m_packed != nullptr || m_needs.packed == 0; }
    /// Whether a run reads the operand where it lies; whether packing does.
    bool reads(size_t operand) const;
    bool packs(size_t operand) const;
    /// LibraryPlan::implementations
    std::vector<std::string> implementations() const;
    /// Addresses of the operands and results, in the call's order.
    Result<void> run(std::span<const void* const> operands, std::span<void* const> results, void* scratch,
                     const CtParallel& parallel) const;

  private:
    PlannedCall(const CtLibrary& library, std::unique_ptr<OwnedCall> call)
        : m_library(&library), m_call(std::move(call)) {}
    Error failure() const;

    const CtLibrary* m_library;
    std::string m_plugin;  // the name of a plugin's library
    std::unique_ptr<OwnedCall> m_call;
    CtPlan* m_plan = nullptr;
    CtNeeds m_needs{};
    std::shared_ptr<Storage> m_packed;
};

}  // namespace cutaway
