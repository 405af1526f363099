#pragma once
// Lines of a kernel's code and the buffers that they write or read. What lies in no buffer has no line of its own.
#include <optional>
#include <vector>

#include "cutaway/code_line.h"

namespace cutaway::ui {

/// The first line that writes a buffer, else the first that reads it; -1: none does.
int lineOfBuffer(const std::vector<CodeLine>& lines, size_t buffer);
/// The buffer that a line writes, else the last that it reads.
std::optional<size_t> bufferOfLine(const std::vector<CodeLine>& lines, int line);

}  // namespace cutaway::ui
