#pragma once
// Where the commands write. What could not be written is a failure of the command, whatever it was.
#include <memory>
#include <string>
#include <string_view>

#include "cutaway/result.h"

namespace cutaway::cli {

/// Writing to stdout failed: nothing that a command could still print would arrive. Caught in main only.
struct OutputFailed {
    int error = 0;
};

/// Takes std::cout over as long as it lives: control characters in names become visible, and a write that fails throws
/// OutputFailed.
class Output {
  public:
    Output();
    ~Output();
    /// Writes what is left; true if all of it arrived.
    bool finish();
    /// Says why it did not; if a reader has gone away, as `head` does, ends the process in silence as usual tools do.
    static int fail(const OutputFailed& failure);

  private:
    class Buffer;
    std::unique_ptr<Buffer> m_buffer;
    std::streambuf* m_before;
};

/// printf to std::cout.
[[gnu::format(printf, 1, 2)]] void print(const char* format, ...);
/// A line on stderr that is not an error: a remark.
void remark(std::string_view text);

/// Writes text to a file, or to stdout for "-". Status 1 and a message if it cannot.
int writeText(const std::string& path, const std::string& text);
/// Prints an error on stderr and returns the exit status kFailed.
int fail(const Error& error);
/// A command's own status, or 1 and a message.
inline int statusOf(const Result<int>& result) { return result ? *result : fail(result.error()); }

}  // namespace cutaway::cli
