#pragma once
// The two ends of a run in another process. Request and reply lie in shared memory; whatever happens to the worker
// becomes an Error that names the node where it happened.
#include <atomic>

#include "cutaway/jobs.h"
#include "engine/runtime/message.h"
#include "engine/runtime/wire.h"

namespace cutaway {

/// A rewrite that a pass makes.
struct LastRewrite {
    std::string pass, rule;
    int index = 0;           // among those of the pass
    std::string node, body;  // names; body as RewriteInfo's
    int64_t nodeId = 0;
};

/// Status of the worker while it works, which its program sees at once.
class StatusPage {
  public:
    static constexpr std::string_view kNotBegun = "start of the worker";
    /// The call that runs now, by its nodes; the error names it if the process dies.
    void at(std::string_view where) {
        m_inPass.store(false, std::memory_order_relaxed);
        const size_t size = std::min(where.size(), sizeof m_where - 1);
        where.copy(m_where, size);
        m_where[size] = '\0';
    }
    /// The pass that runs now, "joint/remove_noop_ops".
    void inPass(std::string_view path) {
        at(path);
        m_inPass.store(true, std::memory_order_relaxed);
    }
    void done(double fraction) { m_fraction.store(fraction, std::memory_order_relaxed); }

    /// The rewrite that a pass makes now, and how many it makes with that. One with names that do not fit is left out.
    void rewrites(int64_t count, const std::optional<LastRewrite>& last) {
        ByteWriter out;
        if (last) {
            for (const std::string* text : {&last->pass, &last->rule, &last->node, &last->body}) out.text(*text);
            out.pod(last->index);
            out.pod(last->nodeId);
        }
        const bool fits = out.bytes.size() <= sizeof m_rewrite;
        m_rewriteBytes.store(0, std::memory_order_release);
        if (fits) out.bytes.copy(m_rewrite, out.bytes.size());
        m_rewriteBytes.store(fits ? out.bytes.size() : 0, std::memory_order_release);
        m_rewrites.store(count, std::memory_order_relaxed);
    }

    /// A pass has changed the graph. Those that come first are kept.
    void changed(std::string_view pass) {
        const size_t held = ::strnlen(m_changed, sizeof m_changed);
        const std::string_view known(m_changed, held);
        const std::string line = std::string(pass) + "\n";
        if (held + line.size() >= sizeof m_changed || known.starts_with(line) ||
            known.find("\n" + line) != std::string_view::npos)
            return;
        line.copy(m_changed + held, line.size());
        m_changed[held + line.size()] = '\0';
    }

    /// "pass joint/remove_noop_ops" while one runs.
    std::string where() const { return (isInPass() ? "pass " : "") + held(); }
    /// Empty where none runs.
    std::string pass() const { return isInPass() ? held() : std::string(); }
    int64_t rewrites() const { return m_rewrites.load(std::memory_order_relaxed); }
    std::optional<LastRewrite> lastRewrite() const {
        const size_t bytes = m_rewriteBytes.load(std::memory_order_acquire);
        if (bytes == 0) return std::nullopt;
        ByteReader in(std::string_view(m_rewrite, bytes));
        LastRewrite last;
        for (std::string* text : {&last.pass, &last.rule, &last.node, &last.body}) *text = in.text();
        last.index = in.pod<int>();
        last.nodeId = in.pod<int64_t>();
        return in.failed() ? std::nullopt : std::optional(std::move(last));
    }
    /// Names of passes, in the order of their first change.
    std::vector<std::string> changedPasses() const {
        std::vector<std::string> names;
        std::string_view left(m_changed, ::strnlen(m_changed, sizeof m_changed));
        for (size_t end = left.find('\n'); end != std::string_view::npos; end = left.find('\n')) {
            names.emplace_back(left.substr(0, end));
            left.remove_prefix(end + 1);
        }
        return names;
    }
    double fraction() const { return m_fraction.load(std::memory_order_relaxed); }

  private:
    bool isInPass() const { return m_inPass.load(std::memory_order_relaxed); }
    std::string held() const { return std::string(m_where, ::strnlen(m_where, sizeof m_where)); }

    std::atomic<double> m_fraction{0};
    char m_where[248] = "start of the worker";  // kNotBegun, until it says more
    std::atomic<bool> m_inPass{false};
    std::atomic<int64_t> m_rewrites{0};
    std::atomic<size_t> m_rewriteBytes{0};
    char m_rewrite[1016];
    char m_changed[2040] = "";
};

/// Fetched is not a request: large results have been read where they lie, and are wanted no longer.
enum class WorkerTask : uint8_t {
    Load,
    Compiled,
    Unload,
    Reference,
    Checked,
    Fetched,
    FindCuda,
    CompileCuda,
};

struct WorkerOptions {
    int threads = 0;            // of libraries; 0 = one per core
    double timeoutSeconds = 0;  // 0 = no limit
    int64_t memoryBytes = 0;    // address space; 0 = as much as the machine has left
    bool device = false;        // it uses a GPU, whose driver reserves more address space than any limit lets it
    /// What the worker says while it works (tell), at once.
    std::function<void(std::string_view)> told = {};
    /// Results, by their places, that stay in the worker until their bytes are asked for, or until another request
    /// comes that is not given them. Null: none.
    std::function<bool(size_t)> leaves = {};
    ResultMemory* memory = nullptr;  // for the others; null: new memory
};
/// A process that answers one request after the other, and keeps between them what it was told to. When it crashes,
/// hangs or runs out of memory the error says so, and it is gone: start another.
class Worker {
  public:
    /// `lasting`: it may be wanted for longer than the calling thread lives.
    static Result<Worker> start(const WorkerOptions& options, bool lasting);
    Worker(Worker&&) noexcept;
    Worker& operator=(Worker&&) noexcept;
    ~Worker();

    /// Sends, waits, returns what it answers. Large tensors that may not be written are kept there, but for a compiled
    /// program's, which gives them back when it has packed them. `doing` is for messages: "the compiled graph". Of the
    /// options the time limit and what follows count.
    Result<Message> ask(WorkerTask task, std::string_view doing, std::string_view text,
                        const std::vector<Tensor>& tensors, const WorkerOptions& options, const Progress& progress);
    /// Reads those of the tensors that were left there: another request follows that ends them.
    Result<void> fetchLeft(const std::vector<Tensor>& tensors);
    bool running();
    int process() const;
    /// Lets it end by itself, and waits for that.
    void end();
    /// Has it forget its program and all that it keeps.
    void unload();

  private:
    struct State;
    explicit Worker(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

/// Whether the worker had ended before it began with the request: another may answer it.
bool neverBegan(const Error& error);
/// Of a worker that waits (worker_pool.h) or, with a limit of memory or faults asked for, of one of its own, which ends
/// with the answer. One that crashes, hangs or is cancelled is gone, and the next request gets another.
Result<Message> askWorker(WorkerTask task, std::string_view doing, std::string_view text,
                          const std::vector<Tensor>& tensors, const WorkerOptions& options, const Progress& progress);

/// In the worker: says bytes to its program while the work goes on.
void tell(std::string_view bytes);

/// main() of the worker: `cutaway-worker serve` reads from its input tasks with two descriptors of shared memory each,
/// request and reply, and says a line when a reply is written, even one with an error. Large results stay in the
/// worker, and its program reads them there, if the system lets it. Ends with its input.
int workerMain(int argc, char** argv);

}  // namespace cutaway
