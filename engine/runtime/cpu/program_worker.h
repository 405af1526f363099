#pragma once
// The process in which a program runs: loaded once with its code and constants, it is asked for one run after the
// other.
#include <mutex>

#include "engine/runtime/cpu/host_package.h"
#include "engine/runtime/worker_pool.h"

namespace cutaway {

struct CpuRunOptions;

class ProgramWorker : public std::enable_shared_from_this<ProgramWorker> {
  public:
    explicit ProgramWorker(std::shared_ptr<const HostPackage> package);
    /// Its process forgets the program, and waits for another.
    ~ProgramWorker();
    /// What came back, and what that cost.
    struct Reply {
        Message message;
        double loadMilliseconds = 0;  // of the process's start and load
    };
    /// Runs in the process that has the program, or in a new one if there is none, if it has another number of threads,
    /// or if the options ask for limits of their own. `inputs` as the function lays them out, but for constant ones,
    /// which are sent once as they are. `results`: their bytes, as far as they are known (returnedBytes).
    Result<Reply> run(size_t function, const std::vector<Tensor>& inputs, const std::vector<size_t>& results,
                      const CpuRunOptions& options, const Progress& progress);
    /// Its number, for tests; 0 if there is none.
    int process() const;
    /// CpuProgram::hold
    std::unique_lock<std::recursive_mutex> hold() const { return std::unique_lock(m_turn); }

  private:
    /// A process with the program loaded, and memory for what it answers.
    struct Loading {
        Worker& worker;
        ResultMemory& results;
    };
    Result<void> load(Loading at, size_t function, const std::vector<Tensor>& inputs,
                      const std::vector<size_t>& results, const CpuRunOptions& options, const Progress& progress);
    Result<Reply> ask(Loading at, size_t function, const std::vector<Tensor>& inputs, const CpuRunOptions& options,
                      const Progress& progress);
    Result<Reply> askLoaded(size_t function, const std::vector<Tensor>& inputs, const std::vector<size_t>& results,
                            const CpuRunOptions& options, const Progress& progress);
    /// The weights of each function, from the inputs of one: a backward has those that it shares with the forward.
    std::vector<std::vector<Tensor>> weightsOf(size_t function, const std::vector<Tensor>& inputs) const;
    /// Such a process has no limit of memory, and waits for no other program.
    WorkerKind kind() const {
        return m_package->program.device.type == DeviceType::Cpu ? WorkerKind::Host : WorkerKind::Device;
    }
    bool isLoaded(size_t function) const { return function < m_loaded.size() && m_loaded[function]; }
    void keepAlive();

    std::shared_ptr<const HostPackage> m_package;
    std::string m_bytes;  // the program, as it is sent
    mutable std::recursive_mutex m_turn;
    std::optional<Worker> m_worker;
    int m_threads = 0;
    bool m_splitSmall = false;
    bool m_waited = false;  // the process has waited for this program, or for a run
    /// By function, whether the process has the program with the function's weights; empty without the program.
    std::vector<bool> m_loaded;
    ResultMemory m_results;
    bool m_keepAll = false;  // weights that libraries have packed are wanted again, for other sizes
};

/// The worker's side of unloading, loading and running a program. `memory`: the request's.
Result<Message> answerUnload();
Result<Message> answerLoad(Message& request, const SharedMemory& memory);
Result<Message> answerCompiled(Message& request, StatusPage& board);
/// Whether the program's device answers nothing any more: the process should end, and the next request gets another.
bool deviceIsBroken();
/// Whether this process has a GPU open, and no program that uses it.
bool idlesOnDevice();

}  // namespace cutaway
