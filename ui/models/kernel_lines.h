#pragma once
// Lines of a kernel's code and the nodes whose values they write or read. A kernel's code names its buffers b0, b1, …;
// what lies in none of them has no line of its own.
#include <QString>
#include <optional>

namespace cutaway::ui {

/// The line that writes a buffer, else the first that reads it (not the one that declares it); -1: none does.
int lineOfBuffer(const QString& code, size_t buffer);
/// The buffer that a line writes, else the last that it reads.
std::optional<size_t> bufferOfLine(const QString& line);

}  // namespace cutaway::ui
