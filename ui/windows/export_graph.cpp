#include "ui/windows/export_graph.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QImage>
#include <QSaveFile>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>
#include <functional>

#include "ui/windows/legend.h"
#include "ui/windows/start_folder.h"

namespace cutaway::ui {
namespace {

/// Larger images do not fit the memory of every viewer; the picture is scaled down to it.
constexpr double kMaxPixels = 16384;

/// A word of the legend, and how it is painted.
struct LegendEntry {
    QString word;
    std::function<void(QPainter&, const QRectF&, const GraphColors&)> paint;
};
template <class State>
LegendEntry legendEntryOf(State state) {
    return {legendWord(state), [state](QPainter& painter, const QRectF& box, const GraphColors& colors) {
                paintLegendMark(painter, box, state, colors);
            }};
}

std::vector<LegendEntry> legendOf(const GraphScene& scene, GraphMode mode, const PictureMarks& marks) {
    std::vector<LegendEntry> legend;
    const bool changed = std::any_of(scene.picture.nodes.begin(), scene.picture.nodes.end(),
                                     [](const auto& node) { return node.change != Change::Unchanged; });
    if (marks.heat) {
        for (int heat = 0; heat < kHeats; ++heat) legend.push_back(legendEntryOf(static_cast<Heat>(heat)));
    } else if (marks.sides) {
        for (const Side side : {Side::Forward, Side::Backward, Side::Both}) legend.push_back(legendEntryOf(side));
        legend.push_back({savedWord(), paintSavedMark});
    } else if (changed && mode == GraphMode::Union) {
        for (const Change change : {Change::Added, Change::Removed, Change::Edited, Change::Unchanged})
            legend.push_back(legendEntryOf(change));
    }
    return legend;
}

/// Two panes are one picture on paper.
GraphMode modeOnPaper(GraphMode mode) { return mode == GraphMode::SideBySide ? GraphMode::Union : mode; }

/// The picture with its head: the title, and what the colours mean where they mean something.
class Sheet {
  public:
    Sheet(const GraphScene& scene, GraphMode mode, const PictureMarks& marks, const QPalette& palette,
          const QString& title)
        : m_scene(scene),
          m_mode(modeOnPaper(mode)),
          m_marks(marks),
          m_colors(GraphColors::of(palette)),
          m_ink(palette.color(QPalette::Text)),
          m_title(title),
          m_font(scene.font),
          m_titleFont(scene.font),
          m_legend(legendOf(scene, m_mode, marks)) {
        m_titleFont.setBold(true);
        m_titleFont.setPointSizeF(1.3 * m_titleFont.pointSizeF());
        const QFontMetricsF letters(m_font), titleLetters(m_titleFont);
        double legend = 0;
        for (const LegendEntry& entry : m_legend) legend += legendMarkSize(entry.word, letters).width() + kGap;
        const double head = kGap + titleLetters.height() + (m_legend.empty() ? 0 : kGap + letters.height() + 4);
        m_bounds = scene.bounds.adjusted(0, -head - kGap, 0, 0);
        m_bounds.setWidth(
            std::max({m_bounds.width(), titleLetters.horizontalAdvance(title) + 2 * kGap, legend + kGap}));
    }
    const QRectF& bounds() const { return m_bounds; }

    void paint(QPainter& painter) const {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.fillRect(m_bounds, m_colors.canvas);
        PaintRequest request;
        request.area = m_scene.bounds;
        request.mode = m_mode;
        request.marks = m_marks.sides;
        request.heat = m_marks.heat;
        painter.save();
        paintScene(painter, m_scene, m_colors, request);
        painter.restore();
        QPointF at = m_bounds.topLeft() + QPointF(kGap, kGap);
        const double line = QFontMetricsF(m_titleFont).height();
        painter.setFont(m_titleFont);
        painter.setPen(m_ink);
        painter.drawText(QRectF(at, QSizeF(m_bounds.width() - 2 * kGap, line)),
                         Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, m_title);
        at.ry() += line + kGap;
        painter.setFont(m_font);
        for (const LegendEntry& entry : m_legend) {
            const QSizeF size = legendMarkSize(entry.word, QFontMetricsF(m_font));
            entry.paint(painter, {at, size}, m_colors);
            at.rx() += size.width() + kGap;
        }
    }

  private:
    static constexpr double kGap = 10;
    const GraphScene& m_scene;
    GraphMode m_mode;
    PictureMarks m_marks;
    GraphColors m_colors;
    QColor m_ink;
    QString m_title;
    QFont m_font, m_titleFont;
    std::vector<LegendEntry> m_legend;
    QRectF m_bounds;
};

/// DOT's colours of the states of a difference, and of the sides of a partition.
constexpr const char* kChangeColors[] = {"#57606a", "#1a7f37", "#c4232c", "#9a6700"};
constexpr const char* kSideColors[] = {"#0969da", "#8250df", "#bc4c00"};

QString edgeColor(Change change, const PictureMarks& marks) {
    const bool plain = marks.sides || marks.heat;
    return QString::fromLatin1(kChangeColors[static_cast<int>(plain ? Change::Unchanged : change)]);
}

/// What DOT draws of a node's state: its sign, colour and outline.
struct DotState {
    QString sign, color, more;
};
DotState dotStateOf(const Picture::Node& node, const PictureMarks& marks) {
    const QString folded = node.isFold() ? QStringLiteral(", style=dotted") : QString();
    if (marks.heat) {
        const HeatMark* mark = node.isFold() ? nullptr : marks.heat->find(node.id);
        const bool wrong = mark && mark->heat == Heat::Wrong;
        return {mark ? mark->sign + ' ' : QString(), QString::fromLatin1(wrong ? kChangeColors[2] : kChangeColors[0]),
                folded};
    }
    if (marks.sides) {
        const SideMark* mark = node.isFold() ? nullptr : marks.sides->find(node.id);
        if (!mark) return {{}, QString::fromLatin1(kChangeColors[0]), folded};
        return {signOf(mark->side) + ' ', QString::fromLatin1(kSideColors[static_cast<int>(mark->side)]),
                mark->saved ? QStringLiteral(", peripheries=2") : QString()};
    }
    return {signOf(node.change), QString::fromLatin1(kChangeColors[static_cast<int>(node.change)]), folded};
}

QString quoted(QString text) {
    return '"' + text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n") + '"';
}

Error cannotWrite(const QString& path, const QString& why) {
    return {ErrorCode::ToolFailed,
            "cannot be written: " + why.toStdString(),
            path.toStdString(),
            {"Choose a folder that you can write to."}};
}

}  // namespace

QString dotText(const GraphScene& scene, GraphMode mode, const PictureMarks& marks) {
    const GraphMode shown = modeOnPaper(mode);
    QString text = QStringLiteral("digraph step {\n    node [shape=box];\n");
    for (size_t i = 0; i < scene.picture.nodes.size(); ++i) {
        const Picture::Node& node = scene.picture.nodes[i];
        if (!shownIn(shown, node.change)) continue;
        const DotState state = dotStateOf(node, marks);
        QString label = state.sign + node.title;
        if (!node.detail.isEmpty()) label += '\n' + node.detail;
        for (const auto& chip : node.chips) label += QStringLiteral("\n[%1]").arg(chip.text);
        text +=
            QStringLiteral("    n%1 [label=%2, color=\"%3\"%4];\n").arg(i).arg(quoted(label), state.color, state.more);
    }
    for (const auto& edge : scene.picture.edges) {
        if (!shownIn(shown, edge.change) || !shownIn(shown, scene.picture.nodes[edge.from].change) ||
            !shownIn(shown, scene.picture.nodes[edge.to].change))
            continue;
        text += QStringLiteral("    n%1 -> n%2 [color=\"%3\"%4];\n")
                    .arg(edge.from)
                    .arg(edge.to)
                    .arg(edgeColor(edge.change, marks), edge.rewired ? QStringLiteral(", style=dashed") : QString());
    }
    return text + QStringLiteral("}\n");
}

QString askForFile(QWidget* parent, const QString& title, const QString& name, const QStringList& filters) {
    QFileDialog dialog(parent, title);
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setNameFilters(filters);
    // "SVG (*.svg)": the dialog adds the ending itself, and asks before it writes over what has that name then.
    const auto follow = [&dialog](const QString& filter) {
        dialog.setDefaultSuffix(filter.section(QStringLiteral("*."), 1, 1).section(')', 0, 0));
    };
    QObject::connect(&dialog, &QFileDialog::filterSelected, &dialog, follow);
    follow(filters.value(0));
    dialog.setDirectory(startFolder());
    dialog.selectFile(name + QChar('.') + dialog.defaultSuffix());
    return dialog.exec() == QDialog::Accepted ? beginAt(dialog.selectedFiles().value(0)) : QString();
}

Result<void> exportGraph(const GraphScene& scene, GraphMode mode, const PictureMarks& marks, const QPalette& palette,
                         const QString& title, const QString& path) {
    const QString kind = QFileInfo(path).suffix().toLower();
    if (kind == "dot" || kind == "gv") {
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || file.write(dotText(scene, mode, marks).toUtf8()) < 0 || !file.commit())
            return cannotWrite(path, file.errorString());
        return {};
    }
    const Sheet sheet(scene, mode, marks, palette, title);
    if (kind == "svg") {
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly)) return cannotWrite(path, file.errorString());
        QSvgGenerator generator;
        generator.setTitle(title);
        generator.setOutputDevice(&file);
        generator.setViewBox(sheet.bounds());
        generator.setSize(sheet.bounds().size().toSize());
        QPainter painter(&generator);
        sheet.paint(painter);
        painter.end();
        if (!file.commit()) return cannotWrite(path, file.errorString());
        return {};
    }
    if (kind == "png") {
        const double scale = std::min(2.0, kMaxPixels / std::max(sheet.bounds().width(), sheet.bounds().height()));
        QImage image((sheet.bounds().size() * scale).toSize().expandedTo({1, 1}), QImage::Format_ARGB32_Premultiplied);
        if (image.isNull()) return cannotWrite(path, QStringLiteral("the picture does not fit into memory"));
        QPainter painter(&image);
        painter.scale(scale, scale);
        painter.translate(-sheet.bounds().topLeft());
        sheet.paint(painter);
        painter.end();
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || !image.save(&file, "PNG") || !file.commit())
            return cannotWrite(path, file.errorString());
        return {};
    }
    return unsupported(kind.isEmpty() ? "the name has no ending that tells the kind of picture"
                                      : "pictures cannot be saved as ." + kind.toStdString(),
                       path.toStdString(), {"Use a name that ends in .svg, .png or .dot."});
}

}  // namespace cutaway::ui
