#include "engine/formats/structured_trace.h"

#include <charconv>
#include <set>

#include "engine/formats/json.h"
#include "engine/formats/recorded_stage.h"
#include "engine/formats/repro.h"
#include "engine/formats/text_file.h"
#include "engine/support/md5.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

bool isGraphEvent(std::string_view event) {
    for (std::string_view known : {"dynamo_output_graph", "aot_forward_graph", "aot_backward_graph", "aot_joint_graph",
                                   "aot_inference_graph", "inductor_post_grad_graph", "inductor_pre_grad_graph"})
        if (event == known) return true;
    return false;
}
bool isGraphArtifact(std::string_view name) {
    return isGraphEvent(name) || (name.starts_with("before_") && name.ends_with("_graph")) ||
           (name.starts_with("after_") && name.ends_with("_graph")) || name.ends_with("_pre_grad") ||
           name.ends_with("_post_grad");
}

struct Symbol {
    std::string name;
    SymbolInfo info;
};
/// create_symbol: {"symbol": "s77", "val": "5", "vr": "[2, int_oo]"}
std::optional<Symbol> symbolOf(const Json& event) {
    const auto name = event.find("symbol");
    if (!name || !name->text()) return std::nullopt;
    Symbol out{std::string(*name->text()), {}};
    auto number = [](std::string_view text) -> std::optional<int64_t> {
        int64_t value = 0;
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
        return status == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
    };
    if (const auto hint = event.find("val"); hint && hint->text()) out.info.hint = number(*hint->text());
    if (const auto range = event.find("vr"); range && range->text()) {
        std::string_view text = *range->text();
        const size_t comma = text.find(", ");
        if (text.size() > 2 && comma != std::string_view::npos) {
            out.info.lower = number(text.substr(1, comma - 1));
            out.info.upper = number(text.substr(comma + 2, text.size() - comma - 3));
        }
    }
    return out;
}

class TraceReader {
  public:
    TraceReader(const std::string& path, const OpenOptions& options) : m_options(options) {
        m_file.path = path;
        m_file.format = FileFormat::StructuredTrace;
    }

    Result<OpenedFile> read(std::string_view text) {
        size_t line = 0;
        while (!text.empty()) {
            ++line;
            const size_t end = text.find('\n');
            std::string_view header = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            const size_t open = header.find("] {");
            if (open == std::string_view::npos) {
                if (header.empty() || header.front() == '\t') continue;
                m_file.remarks.push_back("line " + std::to_string(line) + " is not a record and is skipped");
                if (m_file.remarks.size() > 50)
                    return invalidInput("many lines are not records of a structured trace",
                                        m_file.path + ":" + std::to_string(line));
                continue;
            }
            m_line = line;
            std::string payload = takePayload(text, line);
            CT_TRY_VOID(record(header.substr(open + 2), std::move(payload), text.empty()));
        }
        m_file.description = "structured trace, " + std::to_string(m_records) + " records, " +
                             std::to_string(m_file.graphs.size()) + " graphs";
        for (const auto& [event, count] : m_counts) m_file.contents.push_back(event + " × " + std::to_string(count));
        for (OpenedGraph& graph : m_file.graphs)
            for (const auto& [name, info] : m_symbols)
                if (auto found = graph.module->symbols.find(name); found != graph.module->symbols.end())
                    found->second = info;
        CT_TRY_VOID(requireGraphs(m_file, m_options));
        return std::move(m_file);
    }

  private:
    /// The lines after the header, their tabs removed, joined by newlines.
    static std::string takePayload(std::string_view& text, size_t& line) {
        std::string payload;
        bool first = true;
        while (text.starts_with('\t')) {
            ++line;
            const size_t end = text.find('\n');
            if (!std::exchange(first, false)) payload += '\n';
            payload += text.substr(1, end == std::string_view::npos ? end : end - 1);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        }
        return payload;
    }

    Result<void> record(std::string_view json, std::string payload, bool last) {
        const std::string where = m_file.path + ":" + std::to_string(m_line);
        const auto document = parseJson(json, where);
        if (!document) {
            if (!last) return document.error();
            m_file.remarks.emplace_back("the last record is cut off and is left out");
            return {};
        }
        ++m_records;
        const Json& root = (*document)->root;
        std::string event = eventOf(root);
        std::string name = event;
        if (const auto artifact = root.find("artifact"))
            if (const auto given = artifact->find("name"); given && given->text()) name = std::string(*given->text());
        if (const auto symbol = root.find("create_symbol"))
            if (auto found = symbolOf(*symbol)) m_symbols[found->name] = found->info;
        ++m_counts[name];
        if (const auto sum = root.find("has_payload"); sum && sum->text() && *sum->text() != md5Hex(payload)) {
            // The record that a crash cut off has no complete payload either.
            m_file.remarks.push_back(where + ": the payload of " + name + " does not match its checksum" +
                                     (last ? "; it is the last record and may be cut off" : ""));
        }
        if (isGraphEvent(event) || (event == "artifact" && isGraphArtifact(name))) addText(root, name, payload);
        else if (name == "fx_graph_runnable") addRunnable(root, name, payload);
        return {};
    }
    /// The one key that says what happened (TRC-1).
    static std::string eventOf(const Json& root) {
        static constexpr std::string_view kContext[] = {
            "rank",  "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt",
            "stack", "has_payload",          "process"};
        for (const auto& [key, value] : root.members())
            if (std::find(std::begin(kContext), std::end(kContext), key) == std::end(kContext)) return std::string(key);
        return "unknown";
    }
    /// TRC-5: rank, frame, compilation and attempt as "[rank1] 0/0.1".
    std::string graphName(const Json& root, const std::string& stage) {
        auto number = [&](const char* key) -> std::optional<int64_t> {
            const auto value = root.find(key);
            return value ? value->integer() : std::nullopt;
        };
        std::string name;
        if (const auto rank = number("rank")) name += "[rank" + std::to_string(*rank) + "] ";
        if (const auto id = number("compiled_autograd_id")) name += "!" + std::to_string(*id) + "/";
        if (const auto frame = number("frame_id"))
            name += std::to_string(*frame) + "/" + std::to_string(number("frame_compile_id").value_or(0));
        if (const auto attempt = number("attempt"); attempt && *attempt > 0) name += "." + std::to_string(*attempt);
        name += (name.empty() ? "" : " ") + stage;
        // Graphs that were not asked for are counted, too, so that a name means the same graph in every case.
        std::string unique = name;
        for (int n = 2; !m_names.insert(unique).second; ++n) unique = name + " #" + std::to_string(n);
        return unique;
    }
    void addText(const Json& root, const std::string& stage, const std::string& payload) {
        const std::string name = graphName(root, stage);
        if (!m_options.graph.empty() && m_options.graph != name) return;
        auto module = parseText(payload, {.file = m_file.path, .types = {}});
        if (!module) return addGraph(m_file, placed(std::move(module).error()), name, m_options);
        OpenedGraph graph;
        graph.module = std::move(*module);
        setNextStage(*graph.module, nextStage(stage));
        addGraph(m_file, std::move(graph), name, m_options);
    }
    void addRunnable(const Json& root, const std::string& stage, const std::string& payload) {
        const std::string name = graphName(root, stage);
        if (!m_options.graph.empty() && m_options.graph != name) return;
        auto file = readRepro(payload, m_file.path, storagesBeside(m_file.path, payload));
        if (!file) return addGraph(m_file, placed(std::move(file).error()), name, m_options);
        addGraph(m_file, std::move(file->graphs.front()), name, m_options);
    }
    Error placed(Error error) const {
        error.where = "payload of line " + std::to_string(m_line) + (error.where.empty() ? "" : ", " + error.where);
        return error;
    }

    const OpenOptions& m_options;
    OpenedFile m_file;
    size_t m_line = 0, m_records = 0;
    std::map<std::string, int64_t> m_counts;
    std::set<std::string> m_names;
    std::map<std::string, SymbolInfo> m_symbols;
};

}  // namespace

Result<OpenedFile> readStructuredTrace(std::string_view text, const std::string& path, const OpenOptions& options) {
    return TraceReader(path, options).read(text);
}

}  // namespace cutaway
