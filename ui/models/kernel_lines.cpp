#include "ui/models/kernel_lines.h"

#include <algorithm>

namespace cutaway::ui {

int lineOfBuffer(const std::vector<CodeLine>& lines, size_t buffer) {
    const int own = static_cast<int>(buffer);
    const auto place = [&](auto found) { return found == lines.end() ? -1 : static_cast<int>(found - lines.begin()); };
    const int written = place(std::find_if(lines.begin(), lines.end(), [&](auto& line) { return line.writes == own; }));
    if (written >= 0) return written;
    return place(std::find_if(lines.begin(), lines.end(), [&](const CodeLine& line) {
        return std::find(line.reads.begin(), line.reads.end(), own) != line.reads.end();
    }));
}

std::optional<size_t> bufferOfLine(const std::vector<CodeLine>& lines, int line) {
    if (line < 0 || static_cast<size_t>(line) >= lines.size()) return {};
    const CodeLine& codeLine = lines[static_cast<size_t>(line)];
    if (codeLine.writes >= 0) return static_cast<size_t>(codeLine.writes);
    if (codeLine.reads.empty()) return {};
    return static_cast<size_t>(codeLine.reads.back());
}

}  // namespace cutaway::ui
