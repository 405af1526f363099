#pragma once
// A host program with its code, its weights and what libraries have planned: never changes, so any number of contexts
// run it at once (host_context.h).
#include <list>
#include <mutex>
#include <set>

#include "engine/host/bind_host.h"
#include "engine/runtime/cpu/constant_memory.h"
#include "engine/runtime/cpu/kernel_code.h"
#include "engine/runtime/cpu/plugin_library.h"
#include "engine/runtime/cpu/thread_pool.h"
#include "engine/runtime/device_memory.h"
#include "engine/runtime/libraries/planned_call.h"

namespace cutaway {

/// A segment, and all before it, for one set of sizes.
struct PreparedSegment {
    struct Call {
        std::shared_ptr<PlannedCall> plan;  // null: a kernel, or the library has refused
        std::vector<int64_t> operands;      // value numbers, in the order of the plan's
        std::string refusal;                // why the library did not take it: the reference computes it
        int64_t scratchAt = 0;              // where its scratch memory starts in that of the segment's values
    };
    BoundFunction bound;
    std::vector<Call> calls;  // by step
    int64_t scratch = 0;      // bytes, of the call that needs most
    int64_t memory = 0;       // bytes of this segment's values, with room for its calls' scratch memory
};

struct ProgramOptions {
    int threads = 0;          // 0 = one per core
    bool splitSmall = false;  // all threads for every kernel, however little there is to do
};

class LoadedProgram {
  public:
    /// `constants`: in the order of the program's. `weights`: of each function its parameters that are constant, at
    /// their places; the rest is undefined. All are read where they lie, with the strides that the program says.
    /// They lie in the memory of `device`.
    LoadedProgram(HostProgram program, std::unique_ptr<KernelCode> code, std::vector<Tensor> constants,
                  std::vector<std::vector<Tensor>> weights, const ProgramOptions& options,
                  std::shared_ptr<DeviceMemory> device = hostMemory());

    /// From now on memory of constants is given back once libraries have packed them and nothing else reads them; that
    /// a parameter is returned as it is does not count (HostContext::runInPlace). Sizes that come later may want it
    /// again: then prepare fails, and lacksConstants says so. Before the first prepare.
    void forgetPacked(ForgetBytes forget);
    bool lacksConstants() const { return m_lacking; }
    /// Of weights and constants; what libraries have packed counts as it was.
    int64_t constantBytes() const { return m_memory.bytes(); }
    /// What of their own memory is still held.
    int64_t constantBytesHeld() const { return m_memory.bytesHeld(); }

    const HostProgram& program() const { return m_program; }
    const KernelCode& code() const { return *m_code; }
    const ThreadPool& pool() const { return m_pool; }
    DeviceMemory& device() const { return *m_device; }
    /// Threads that a step gets.
    int threadsFor(const BoundStep& step) const;
    /// A constant, or a constant parameter of the function; undefined for all other values.
    Tensor constant(size_t function, const HostValue& value) const;

    /// Made when first asked for; the latest few are kept. `before`: of the segment before it, for these sizes. Errors:
    /// of bindSegment, and of a library that cannot pack its weights.
    Result<std::shared_ptr<const PreparedSegment>> prepare(size_t function, size_t segment, const SymbolValues& sizes,
                                                           const PreparedSegment* before);

  private:
    struct CachedSegment {
        size_t function = 0, segment = 0;
        SymbolValues sizes;
        std::shared_ptr<const PreparedSegment> prepared;
    };
    PreparedSegment::Call plan(size_t function, const HostStep& step, const BoundStep& bound,
                               const BoundFunction& values) const;
    /// `packAll`: constants that not only libraries read are packed, too.
    PreparedSegment::Call plan(size_t function, const HostStep& step, const BoundStep& bound,
                               const BoundFunction& values, bool packAll) const;
    /// Packs what the segment's calls want packed, one after the other, and gives back what was packed.
    Result<void> pack(size_t function, size_t segment, PreparedSegment& fresh);
    /// Of a plugin's library; its process is started when it is first asked.
    Result<std::shared_ptr<PluginCalls>> callsOf(const PluginLibrary& library) const;
    bool sharePacked(PlannedCall& call, const PreparedSegment& fresh) const;
    /// The memory of a value that is a constant or a view of one, or null.
    const std::byte* constantAt(size_t function, int64_t value, const BoundFunction* bound) const;
    /// Calls `body` with each constant that a step reads other than by a library's plan, or that is returned.
    template <class Body>
    void forEachDirectRead(size_t function, size_t first, size_t end, const Body& body) const;
    void countReaders(size_t function, size_t segment, const PreparedSegment& fresh);
    static std::vector<Tensor> all(const std::vector<Tensor>& constants,
                                   const std::vector<std::vector<Tensor>>& weights);

    HostProgram m_program;
    std::unique_ptr<KernelCode> m_code;
    std::vector<Tensor> m_constants;
    std::vector<std::vector<Tensor>> m_weights;
    ConstantMemory m_memory;
    std::set<const void*> m_readPlainly;  // constants that not only libraries read; looked up, never iterated
    ForgetBytes m_forget;
    bool m_lacking = false;
    ThreadPool m_pool;
    std::shared_ptr<DeviceMemory> m_device;
    bool m_splitSmall;
    std::mutex m_mutex;
    mutable std::vector<std::shared_ptr<PluginCalls>> m_plugins;
    std::list<CachedSegment> m_segments;  // the latest first
};

}  // namespace cutaway
