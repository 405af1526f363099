#include "ui/session/graph_coloring.h"

#include "ui/session/ask_queue.h"

namespace cutaway::ui {
namespace {

/// The nodes that statements of the text define, by name.
QHash<QString, NodeKey> nodesByName(const GraphText& graph) {
    QHash<QString, NodeKey> nodes;
    const QStringList lines = QString::fromStdString(graph.text).split(QChar('\n'));
    for (qsizetype i = 0; i < lines.size() && i < static_cast<qsizetype>(graph.lineNodes.size()); ++i) {
        const NodeKey key = graph.lineNodes[static_cast<size_t>(i)];
        const QString line = lines[i].trimmed();
        qsizetype end = 0;
        while (end < line.size() && (line[end].isLetterOrNumber() || line[end] == QChar('_'))) ++end;
        if (key != NodeKey::None && end > 0) nodes.insert(line.left(end), key);
    }
    return nodes;
}

struct Colored {
    std::shared_ptr<const HeatMarks> marks;
    QString sentence;
};

}  // namespace

void GraphColoring::color(const Place& place, const std::string& coloring) {
    clear();
    askQueue<Colored>(
        this, m_queue, "coloring", m_generation,
        [this, place, coloring](const Progress& progress) -> Result<Colored> {
            CT_TRY(const GraphText graph, m_source.text(place, false, progress));
            CT_TRY(const Coloring said, colorGraph(coloring, graph.text, progress));
            const QHash<QString, NodeKey> nodes = nodesByName(graph);
            Colored out;
            std::vector<std::pair<NodeKey, NodeColor>> colors;
            for (const NodeColor& color : said.nodes)
                if (const auto found = nodes.constFind(QString::fromStdString(color.node)); found != nodes.cend())
                    colors.emplace_back(*found, color);
            out.marks = std::make_shared<const HeatMarks>(colors, QString::fromStdString(said.unit));
            out.sentence = tr("%1 says something of %n nodes.", nullptr, static_cast<int>(colors.size()))
                               .arg(QString::fromStdString(coloring));
            return out;
        },
        [this, place](Result<Colored> colored) {
            if (colored) {
                m_place = place;
                m_marks = colored->marks;
            }
            emit changed();
            emit said(colored ? colored->sentence : QString::fromStdString(colored.error().text()));
        });
}

void GraphColoring::clear() {
    ++m_generation;
    if (!m_marks) return;
    m_marks.reset();
    m_place.reset();
    emit changed();
}

}  // namespace cutaway::ui
