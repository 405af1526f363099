#include "engine/formats/repro_classes.h"

#include <map>
#include <vector>

namespace cutaway {
namespace {

constexpr std::string_view kClass = "class ", kBase = "(torch.nn.Module):";
constexpr int kDeepest = 64;

std::vector<std::string_view> linesOf(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}
bool isIndented(std::string_view line) { return line.empty() || line[0] == ' ' || line[0] == '\t' || line[0] == '\r'; }

class ReproClasses {
  public:
    explicit ReproClasses(std::string_view script) : m_lines(linesOf(script)) {
        for (size_t i = 0; i < m_lines.size(); ++i) {
            const std::string_view line = m_lines[i];
            const size_t base = line.find(kBase);
            if (line.starts_with(kClass) && base != std::string_view::npos) {
                Class found{i, i + 1};
                while (found.end < m_lines.size() && isIndented(m_lines[found.end])) ++found.end;
                m_main = line.substr(kClass.size(), base - kClass.size());
                m_classes.emplace(m_main, found);
            }
        }
        for (const std::string_view line : m_lines)
            if (line.starts_with("mod = ") && line.ends_with("()"))
                if (const std::string_view name = line.substr(6, line.size() - 8); m_classes.contains(name))
                    m_main = name;
    }
    bool areSeveral() const { return m_classes.size() > 1; }
    std::string nested() {
        std::string text;
        for (size_t i = 0; i < m_lines.size(); ++i) {
            const auto at = classAt(i);
            if (at == m_classes.end()) {
                text.append(m_lines[i]).push_back('\n');
                continue;
            }
            if (at->first == m_main) write(at->second, m_main, 0, text);
            i = at->second.end - 1;
        }
        return text;
    }

  private:
    struct Class {
        size_t begin, end;  // lines
    };
    using Classes = std::map<std::string_view, Class>;

    Classes::const_iterator classAt(size_t line) const {
        auto at = m_classes.begin();
        while (at != m_classes.end() && at->second.begin != line) ++at;
        return at;
    }
    /// The class under a name, with those that it makes behind it.
    void write(const Class& given, std::string_view name, int depth, std::string& text) const {
        const std::string indent(static_cast<size_t>(depth) * 4, ' ');
        text.append(indent).append(kClass).append(name).append(kBase).push_back('\n');
        std::vector<std::pair<std::string_view, Class>> made;
        for (size_t i = given.begin + 1; i < given.end; ++i) {
            std::string_view line = m_lines[i];
            text.append(line.empty() ? "" : indent).append(line).push_back('\n');
            const size_t equals = line.find(" = "), first = line.find_first_not_of(" \t");
            if (equals == std::string_view::npos || !line.substr(first).starts_with("self.") || !line.ends_with("()"))
                continue;
            const std::string_view attribute = line.substr(first + 5, equals - first - 5);
            const auto found = m_classes.find(line.substr(equals + 3, line.size() - equals - 5));
            if (found != m_classes.end()) made.emplace_back(attribute, found->second);
        }
        if (depth < kDeepest)
            for (const auto& [attribute, inner] : made) write(inner, attribute, depth + 1, text);
    }

    std::vector<std::string_view> m_lines;
    Classes m_classes;
    std::string_view m_main;
};

}  // namespace

std::string withNestedClasses(std::string_view script) {
    ReproClasses classes(script);
    return classes.areSeveral() ? classes.nested() : std::string(script);
}

}  // namespace cutaway
