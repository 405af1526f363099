#include "engine/formats/text_file.h"

#include <charconv>
#include <set>

#include "engine/formats/inner_tensors.h"
#include "engine/formats/recorded_stage.h"
#include "engine/formats/repro_inputs.h"
#include "engine/text/lexer.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

/// What stays the same along the lines of one log record: source line, frame and artifact, without time and process.
std::string_view recordKey(std::string_view prefix) {
    const size_t end = prefix.find(']', prefix.starts_with("[rank") ? prefix.find("]:") + 1 : 0);
    const size_t begin = prefix.rfind(' ', end);
    return begin == std::string_view::npos ? prefix : prefix.substr(begin + 1);
}

std::string_view trimmed(std::string_view line) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// " ===== Forward graph 0 =====" -> "Forward graph 0"; empty for other lines.
std::string_view titleOf(std::string_view line) {
    line = trimmed(line);
    if (!line.starts_with("=====") || !line.ends_with("=====")) return {};
    while (line.starts_with("=")) line.remove_prefix(1);
    while (line.ends_with("=")) line.remove_suffix(1);
    return trimmed(line);
}

/// "Forward graph 0" -> "Forward graph".
std::string_view withoutNumber(std::string_view title) {
    return title.substr(0, title.find_last_not_of("0123456789 ") + 1);
}

/// Column of "class X(torch.nn.Module):", 0 when a path stands before it as in logs; nothing for other lines.
std::optional<size_t> classColumn(std::string_view line) {
    const size_t at = line.find("class ");
    if (at == std::string_view::npos || line.find("(torch.nn.Module):") == std::string_view::npos) return std::nullopt;
    const size_t first = line.find_first_not_of(" \t");
    if (line[first] == '#' || (at > 0 && line[at - 1] != ' ')) return std::nullopt;
    return first == at ? at : 0;
}

/// "[0/0]" and "[__aot_graphs]" of a record's key, without the brackets.
struct KeyParts {
    std::string frame, artifact;
};
KeyParts partsOf(std::string_view key) {
    KeyParts parts;
    for (size_t open = key.find('['); open != std::string_view::npos; open = key.find('[', open + 1)) {
        std::string_view inside = key.substr(open + 1, key.find(']', open) - open - 1);
        if (inside.starts_with("__")) parts.artifact = std::string(inside.substr(2));
        else if (inside.find('/') != std::string_view::npos && parts.frame.empty()) parts.frame = std::string(inside);
    }
    return parts;
}

class LogSplitter {
  public:
    explicit LogSplitter(SplitLog& out) : m_out(out) {}

    void line(std::string_view key, size_t begin, std::string_view content, size_t number) {
        const std::string_view title = titleOf(content);
        const std::optional<size_t> column = classColumn(content);
        const bool starts =
            trimmed(content) == "TRACED GRAPH" || !title.empty() || (column && m_column && *column <= *m_column);
        if (key != m_key || starts) finish(begin);
        if (key != m_key) m_title = {};
        m_key = key;
        if (!title.empty()) m_title = title;
        if (!column || m_column) return;
        m_column = column;
        m_begin = begin;
        m_firstLine = number;
        m_class = content.substr(content.find("class ") + 6);
        m_class = m_class.substr(0, m_class.find('('));
    }
    void finish(size_t end) {
        if (m_column) {
            const KeyParts parts = partsOf(m_key);
            std::string name = !m_title.empty()          ? std::string(m_title)
                               : !parts.artifact.empty() ? parts.artifact
                                                         : std::string(m_class);
            if (!parts.frame.empty()) name = parts.frame + " " + name;
            std::string unique = name;
            for (int n = 2; !m_names.insert(unique).second; ++n) unique = name + " #" + std::to_string(n);
            const std::string_view record = m_title.empty() ? std::string_view(parts.artifact) : withoutNumber(m_title);
            m_out.blocks.push_back({std::move(unique), std::string(nextStage(record)),
                                    std::string_view(m_out.plain).substr(m_begin, end - m_begin), m_firstLine});
            m_title = {};
        }
        m_column.reset();
    }

  private:
    SplitLog& m_out;
    std::string_view m_key, m_title, m_class;
    std::optional<size_t> m_column;
    size_t m_begin = 0, m_firstLine = 0;
    std::set<std::string> m_names;
};

/// "12:5" becomes "graph.py:12:5", so that errors of several files can be told apart.
template <class T>
Result<T> placedIn(const std::string& path, Result<T> read) {
    if (!read) read.error().where = path + (read.error().where.empty() ? "" : ":") + read.error().where;
    return read;
}

/// "12:5" of a block becomes the line of the whole log.
void shiftPlace(std::string& where, size_t lines) {
    size_t line = 0;
    const auto [end, status] = std::from_chars(where.data(), where.data() + where.size(), line);
    if (status == std::errc() && *end == ':')
        where = std::to_string(line + lines) + where.substr(static_cast<size_t>(end - where.data()));
}

/// A forward graph beside its backward graph was cut out of a joint graph, which the joint passes have seen.
void setStagesOfForwards(std::vector<TextBlock>& blocks) {
    constexpr std::string_view kForward = "Forward graph", kBackward = "Backward graph";
    std::set<std::string, std::less<>> names;
    for (const TextBlock& block : blocks) names.insert(block.name);
    for (TextBlock& block : blocks) {
        const size_t at = block.name.find(kForward);
        if (at == std::string::npos) continue;
        std::string other = block.name;
        block.stage = names.contains(other.replace(at, kForward.size(), kBackward)) ? "post_grad" : "joint";
    }
}

Result<OpenedGraph> readBlock(const TextBlock& block, const std::string& path) {
    auto module = parseText(block.text, {.file = path, .types = {}});
    if (!module) {
        Error error = std::move(module).error();
        shiftPlace(error.where, block.firstLine);
        return error;
    }
    OpenedGraph graph;
    graph.module = std::move(*module);
    takeInnerTensors(*graph.module);
    setNextStage(*graph.module, block.stage);
    return graph;
}

/// "folder/fx_graph_readable.py" -> "fx_graph_readable".
std::string_view stem(std::string_view path) {
    path = path.substr(path.rfind('/') + 1);
    return path.substr(0, path.rfind('.'));
}

}  // namespace

void describeModules(Module& module, std::string_view constructor) {
    for (const ReproAttribute& attribute : readConstructor(constructor)) {
        if (attribute.type) continue;
        const auto text = std::make_shared<const std::string>(attribute.text);
        for (Node& node : module.graph().nodes())
            if (node.isCall() && node.op().style() == Op::Style::Module && node.op().name() == attribute.name) {
                Provenance provenance = node.provenance();
                provenance.moduleType = text;
                module.graph().setProvenance(node, std::move(provenance));
            }
    }
}

std::unique_ptr<const SplitLog> splitLog(std::string_view text) {
    auto out = std::make_unique<SplitLog>();
    fxtext::PlainText plain = fxtext::makePlain(text);
    out->plain = std::move(plain.text);
    const std::string_view all = out->plain;
    LogSplitter splitter(*out);
    size_t raw = 0;
    for (size_t i = 0; i < plain.lineBegins.size(); ++i) {
        const size_t rawEnd = std::min(text.find('\n', raw), text.size());
        const size_t begin = plain.lineBegins[i];
        const size_t end = i + 1 < plain.lineBegins.size() ? plain.lineBegins[i + 1] - 1 : all.size();
        const std::string_view prefix = text.substr(raw, plain.shift.empty() ? 0 : plain.shift[i]);
        splitter.line(prefix.empty() ? prefix : recordKey(prefix), begin, all.substr(begin, end - begin), i);
        raw = std::min(rawEnd + 1, text.size());
    }
    splitter.finish(all.size());
    setStagesOfForwards(out->blocks);
    return out;
}

void addGraph(OpenedFile& file, Result<OpenedGraph> graph, const std::string& name, const OpenOptions& options) {
    if (!options.graph.empty() && name != options.graph) return;
    if (!graph) {
        file.remarks.push_back("graph '" + name + "' cannot be read: " + graph.error().text());
        return;
    }
    graph->name = name;
    graph->module->name = name;
    graph->module->origin.file = file.path;
    file.graphs.push_back(std::move(*graph));
}

Result<void> requireGraphs(const OpenedFile& file, const OpenOptions& options) {
    if (!file.graphs.empty()) return {};
    if (!options.graph.empty() && file.remarks.empty())
        return Error{ErrorCode::NotFound, "no graph named '" + options.graph + "'", file.path, {}};
    Error error = unsupported("none of its graphs can be read", file.path, {});
    if (file.remarks.empty()) error.message = "it holds no graph";
    constexpr size_t kShown = 5;
    error.notes.assign(file.remarks.begin(),
                       file.remarks.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, file.remarks.size())));
    return error;
}

Result<OpenedFile> openTextFile(std::string_view text, const std::string& path, const OpenOptions& options) {
    OpenedFile file;
    file.path = path;
    constexpr std::string_view kClass = "(torch.nn.Module):";
    const size_t first = text.find(kClass);
    const bool several = first != std::string_view::npos && text.find(kClass, first + 1) != std::string_view::npos;
    const auto log = several ? splitLog(text) : nullptr;
    if (!log || log->blocks.size() <= 1) {
        OpenedGraph graph;
        CT_TRY(graph.module, placedIn(path, parseText(text, {.file = path, .types = {}})));
        takeInnerTensors(*graph.module);
        graph.name = graph.module->name;
        setNextStage(*graph.module,
                     log && !log->blocks.empty() ? std::string_view(log->blocks.front().stage) : nextStage(stem(path)));
        if (const size_t constructor = text.find("def __init__(self"); constructor != std::string_view::npos)
            describeModules(*graph.module, text.substr(constructor));
        file.format = FileFormat::FxText;
        file.description = graph.module->origin.format;
        file.graphs.push_back(std::move(graph));
        return file;
    }
    file.format = FileFormat::Log;
    file.description = "log with " + std::to_string(log->blocks.size()) + " graphs";
    for (const TextBlock& block : log->blocks)
        if (options.graph.empty() || options.graph == block.name)
            addGraph(file, readBlock(block, path), block.name, options);
    CT_TRY_VOID(requireGraphs(file, options));
    return file;
}

}  // namespace cutaway
