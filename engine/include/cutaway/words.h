#pragma once
// Words for people, the same in every window and on every terminal.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cutaway {

/// "312 B", "1.5 MiB".
std::string bytesText(int64_t bytes);

/// For terminals and logs: control characters, and bytes that are not UTF-8, as "\x1b". With `lines` line ends and tabs
/// stay.
std::string visibleText(std::string_view text, bool lines = false);

/// Names near to one that does not exist, as a question: "did you mean a, b or c?"; empty if none is near.
std::string suggestion(std::string_view given, std::span<const std::string_view> names);

}  // namespace cutaway
