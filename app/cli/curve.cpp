// bench --curve: how the time of every stage grows with the graph.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

/// One block of a made graph as Python wrote it: a normalized layer with attention, dropout, a write in place, and
/// shapes that cancel out, so that every stage has something to do.
constexpr const char* kBlock = R"(    n# = torch.nn.functional.layer_norm(x@, (64,), scale, shift)
    qa# = torch.nn.functional.linear(n#, w1)
    qb# = qa#.view(2, 8, 4, 16)
    q# = qb#.permute(0, 2, 1, 3)
    ka# = torch.nn.functional.linear(n#, w2)
    kb# = ka#.view(2, 8, 4, 16)
    k# = kb#.permute(0, 2, 3, 1)
    va# = torch.nn.functional.linear(n#, w3)
    vb# = va#.view(2, 8, 4, 16)
    v# = vb#.permute(0, 2, 1, 3)
    sa# = torch.matmul(q#, k#)
    s# = sa# / 4.0
    pa# = torch.softmax(s#, -1)
    p# = torch.nn.functional.dropout(pa#, 0.1, True)
    oa# = torch.matmul(p#, v#)
    ob# = oa#.permute(0, 2, 1, 3)
    o# = ob#.reshape(2, 8, 64)
    t# = o#.to(torch.float32)
    ha# = torch.nn.functional.gelu(t#)
    hb# = ha#.permute(1, 0, 2)
    hc# = hb#.permute(1, 0, 2)
    hd# = hc#.view(16, 64)
    he# = hd#.view(2, 8, 64)
    h# = he#[:, :, :]
    m# = n# * 1
    c# = torch.cat([h#, m#], 2)
    e# = torch.nn.functional.linear(c#, w4)
    f# = torch.full((2, 8, 64), 0.5)
    g# = e#.add_(f#)
    x# = x@ + g#
)";
constexpr int kCallsPerBlock = 30;

std::string madeGraph(int nodes) {
    std::string text =
        "def forward(x_: \"f32[2, 8, 64]\", scale: \"f32[64]\", shift: \"f32[64]\", w1: \"f32[64, 64]\", w2: \"f32[64, 64]\", "
        "w3: \"f32[64, 64]\", w4: \"f32[64, 128]\"):\n";
    std::string last = "_";
    for (int i = 0; i * kCallsPerBlock < nodes; ++i) {
        const std::string number = std::to_string(i);
        for (const char* c = kBlock; *c != '\0'; ++c) {
            if (*c == '#') text += number;
            else if (*c == '@') text += last;
            else text += *c;
        }
        last = number;
    }
    return text + "    return (x" + last + ",)\n";
}

/// Of the processor, not of the clock on the wall: other programs do not count. Sessions work on the thread that asks.
double milliseconds() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Times by what was timed, in the order in which it first was.
class Samples {
  public:
    void add(const std::string& what, double milliseconds) {
        auto found =
            std::find_if(m_times.begin(), m_times.end(), [&](const auto& entry) { return entry.first == what; });
        if (found == m_times.end()) found = m_times.insert(m_times.end(), {what, {}});
        found->second.push_back(milliseconds);
    }
    Json medians() const {
        Json row = Json::object();
        for (auto [what, times] : m_times) {
            std::sort(times.begin(), times.end());
            row[what] = times[times.size() / 2];
        }
        return row;
    }

  private:
    std::vector<std::pair<std::string, std::vector<double>>> m_times;
};

Result<void> write(const std::string& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) return Error{ErrorCode::ToolFailed, "cannot write the file", file, {}};
    return {};
}

/// The first answer to a slider finds out what does not depend on the budget.
Result<void> measureSlider(Session& session, RunId run, Samples& samples) {
    for (const auto& [what, budget] :
         {std::pair{"slider_first", 0.6}, {"slider", 0.5}, {"slider", 0.3}, {"slider", 0.1}}) {
        const double start = milliseconds();
        CT_TRY(const PartitionChoice choice, session.partitionAt(run, budget));
        samples.add(what, milliseconds() - start);
    }
    return {};
}

/// In training, asks for the gradients of all inputs up to capture; the graph behind it already returns them.
void wantGradients(CompileRequest& options) {
    if (options.mode != Mode::Training) return;
    const bool before = options.onlyStage == "pre_grad" || options.onlyStage == "capture";
    if (!before) options.gradients.clear();
    else if (options.gradients.empty()) options.gradients = {"x_", "scale", "shift", "w1", "w2", "w3", "w4"};
}

/// Each stage on its own, on the graph that the one before it leaves.
Result<Json> measure(int nodes, const std::string& file, int repeat, const CompileArguments& compile) {
    Samples samples;
    Json sizes = Json::object();
    int opened = 0;
    for (int i = 0; i < repeat; ++i) {
        CT_TRY_VOID(write(file, madeGraph(nodes)));
        for (const char* stage : {"pre_grad", "capture", "joint", "partition", "post_grad", "schedule"}) {
            Session session;
            double start = milliseconds();
            CT_TRY(const ModelInfo model, session.open(file));
            if (stage == std::string_view("pre_grad")) {
                samples.add("open", milliseconds() - start);
                opened = model.graphs.empty() ? 0 : model.graphs.front().nodes;
            }
            CT_TRY(CompileRequest options, compile.resolved());
            options.onlyStage = stage;
            wantGradients(options);
            start = milliseconds();
            CT_TRY(const RunId run, session.compile(options, compile.hooks));
            samples.add(stage, milliseconds() - start);
            const auto steps = session.steps(run);
            if (!steps || steps->empty()) continue;
            for (const StepInfo& step : *steps)
                if (step.state == StepState::Failed)
                    return Error{ErrorCode::Internal, step.error, "step " + step.name, {}};
            if (stage == std::string_view("partition")) {
                // The joint graph goes on; what a slider asks is measured beside it.
                CT_TRY_VOID(measureSlider(session, run, samples));
                continue;
            }
            const Place after{run, static_cast<int>(steps->size()) - 1, -1};
            sizes[stage] = steps->back().nodesAfter;
            start = milliseconds();
            CT_TRY(const UnionGraph graph, session.diff({run, -1, -1}, after));
            samples.add(std::string(stage) + "_diff", milliseconds() - start);
            CT_TRY(const GraphText text, session.text(after));
            CT_TRY_VOID(write(file, text.text));
        }
    }
    return Json{{"asked", nodes}, {"nodes", opened}, {"nodes_after", sizes}, {"processor_ms", samples.medians()}};
}

}  // namespace

int benchCurve(const std::vector<int>& sizes, int repeat, const CompileArguments& compile, const std::string& json) {
    const auto file =
        std::filesystem::temp_directory_path() /
        ("cutaway-curve-" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ".py");
    Json rows = Json::array();
    int status = 0;
    for (const int nodes : sizes) {
        const auto row = measure(nodes, file.string(), repeat, compile);
        if (!row) {
            status = fail(row.error());
            break;
        }
        if (json.empty()) {
            std::cout << (*row)["nodes"] << " nodes opened; after the stages " << (*row)["nodes_after"].dump() << "\n";
            for (const auto& [what, time] : (*row)["processor_ms"].items())
                print("  %-16s %10.3f ms  %8.3f us a node\n", what.c_str(), time.get<double>(),
                      1000 * time.get<double>() / (*row)["nodes"].get<double>());
            std::cout << std::flush;
        }
        rows.push_back(*row);
    }
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    if (!json.empty() && status == 0) status = writeText(json, dump(rows));
    return status;
}

}  // namespace cutaway::cli
