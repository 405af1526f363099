#pragma once
// A process with all that it has started, also what has left its group: what they do together, stopped, gone on with,
// ended. The process has said that orphans become its children (PR_SET_CHILD_SUBREAPER).
#include <cstdint>
#include <vector>

namespace cutaway {

class ProcessTree {
  public:
    explicit ProcessTree(int process) : m_process(process) {}

    /// Bytes that they have given to the system to write, to files and to each other; of those that have ended, once
    /// somebody has waited for them.
    int64_t writtenBytes() const;
    /// How many there are beside the process itself.
    int others() const;
    /// No one of them runs until goOn().
    void stop() const;
    void goOn() const;
    /// Ends all but the process itself.
    void endOthers() const;

  private:
    int m_process;
};

}  // namespace cutaway
