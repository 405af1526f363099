// The current graph beside graphs of other files, and PyTorch's post-grad graph beside ours.
#include <QFileInfo>

#include "ui/session/session_ask.h"

namespace cutaway::ui {

namespace {

QString keptName(const QString& path, const QString& graph) {
    return graph.isEmpty() ? QFileInfo(path).fileName() : graph;
}

}  // namespace

void SessionController::graphsOf(const QString& path, std::function<void(const std::vector<GraphSummary>&)> then) {
    ask<ModelInfo>(
        Lane::Queries, QStringLiteral("compare"), tr("Reading %1").arg(QFileInfo(path).fileName()),
        [text = path.toStdString()](Source& source, const Progress&) { return source.inspect(text); },
        [then = std::move(then)](ModelInfo info) { then(info.graphs); });
}

void SessionController::graphsAt(const std::vector<Place>& places,
                                 std::function<void(const std::vector<std::shared_ptr<const UnionGraph>>&)> then) {
    using Graphs = std::vector<std::shared_ptr<const UnionGraph>>;
    ask<Graphs>(
        Lane::Queries, QStringLiteral("states"), tr("Reading graphs"),
        [places](Source& source, const Progress& progress) -> Result<Graphs> {
            Graphs graphs;
            for (const Place& place : places) {
                CT_TRY(UnionGraph graph, source.diff(place, place, progress));
                graphs.push_back(std::make_shared<const UnionGraph>(std::move(graph)));
            }
            return graphs;
        },
        std::move(then));
}

void SessionController::compareWith(const QString& path, const QString& graph) {
    if (!m_selection.hasPlace()) return;
    OpenSettings settings;
    settings.graph = graph.toStdString();
    ask<Place>(
        Lane::Queries, QStringLiteral("compare"), tr("Reading %1").arg(keptName(path, graph)),
        [text = path.toStdString(), settings](Source& source, const Progress& progress) {
            return source.keepFile(text, settings, progress);
        },
        [this, name = keptName(path, graph)](Place kept) {
            m_keptNames[kept.run] = name;
            m_selection.compare({kept, m_selection.place()});
        });
}

std::optional<RecordedPair> SessionController::recordedPair() const {
    std::vector<std::string> names;
    for (const GraphSummary& graph : m_graphs) names.push_back(graph.name);
    const std::vector<RecordedPair> pairs = recordedPostGrad(names);
    for (const RecordedPair& pair : pairs)
        if (m_graph.toStdString() == pair.before || m_graph.toStdString() == pair.after) return pair;
    return pairs.empty() ? std::nullopt : std::optional(pairs.front());
}

void SessionController::compareRecorded(const CompileRequest& options) {
    const auto pair = recordedPair();
    if (!pair) return;
    ask<PostGradPlaces>(
        Lane::Queries, QStringLiteral("compare"), tr("Running our post-grad passes on PyTorch's graph"),
        [path = m_path.toStdString(), pair = *pair, options](Source& source, const Progress& progress) {
            return source.postGradBesideRecorded(path, pair, options, progress);
        },
        [this, name = QString::fromStdString(pair->after)](PostGradPlaces places) {
            m_keptNames[places.theirs.run] = name;
            m_keptNames[places.ours.run] = tr("Cutaway's post_grad");
            m_selection.compare({places.theirs, places.ours});
        });
}

}  // namespace cutaway::ui
