#include "engine/support/log.h"

#include <unistd.h>

#include "engine/support/characters.h"

namespace cutaway {

void logWarning(std::string_view text) {
    // One write call: the kernel keeps short writes whole, also between processes.
    const std::string line = "cutaway: " + visibleText(text) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cutaway
