#include "ui/windows/export_graph.h"

#include <QFileInfo>
#include <QImage>
#include <QSaveFile>
#include <QSvgGenerator>
#include <cmath>

namespace cutaway::ui {
namespace {

/// Larger images do not fit the memory of every viewer; the picture is scaled down to it.
constexpr double kMaxPixels = 16384;

void paintWhole(QPainter& painter, const GraphScene& scene, GraphMode mode, const QPalette& palette) {
    PaintRequest request;
    request.area = scene.bounds;
    request.mode = mode == GraphMode::SideBySide ? GraphMode::Union : mode;
    const GraphColors colors = GraphColors::of(palette);
    painter.fillRect(scene.bounds, colors.canvas);
    paintScene(painter, scene, colors, request);
}

QString quoted(QString text) { return '"' + text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n") + '"'; }

Error cannotWrite(const QString& path, const QString& why) {
    return {ErrorCode::ToolFailed, "cannot be written: " + why.toStdString(), path.toStdString(), {"Choose a folder that you can write to."}};
}

}  // namespace

QString dotText(const GraphScene& scene, GraphMode mode) {
    static const char* const kColors[] = {"#57606a", "#1a7f37", "#c4232c", "#9a6700"};
    const GraphMode shown = mode == GraphMode::SideBySide ? GraphMode::Union : mode;
    QString text = QStringLiteral("digraph step {\n    node [shape=box];\n");
    for (size_t i = 0; i < scene.picture.nodes.size(); ++i) {
        const Picture::Node& node = scene.picture.nodes[i];
        if (!shownIn(shown, node.change)) continue;
        QString label = signOf(node.change) + node.title;
        if (!node.detail.isEmpty()) label += '\n' + node.detail;
        for (const auto& chip : node.chips) label += QStringLiteral("\n[%1]").arg(chip.text);
        text += QStringLiteral("    n%1 [label=%2, color=\"%3\"%4];\n")
                    .arg(i)
                    .arg(quoted(label), QString::fromLatin1(kColors[static_cast<int>(node.change)]),
                         node.isFold() ? QStringLiteral(", style=dotted") : QString());
    }
    for (const auto& edge : scene.picture.edges) {
        if (!shownIn(shown, edge.change) || !shownIn(shown, scene.picture.nodes[edge.from].change) || !shownIn(shown, scene.picture.nodes[edge.to].change)) continue;
        text += QStringLiteral("    n%1 -> n%2 [color=\"%3\"%4];\n")
                    .arg(edge.from).arg(edge.to)
                    .arg(QString::fromLatin1(kColors[static_cast<int>(edge.change)]), edge.rewired ? QStringLiteral(", style=dashed") : QString());
    }
    return text + QStringLiteral("}\n");
}

Result<void> exportGraph(const GraphScene& scene, GraphMode mode, const QPalette& palette, const QString& path) {
    const QString kind = QFileInfo(path).suffix().toLower();
    if (kind == "dot" || kind == "gv") {
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || file.write(dotText(scene, mode).toUtf8()) < 0 || !file.commit()) return cannotWrite(path, file.errorString());
        return {};
    }
    if (kind == "svg") {
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly)) return cannotWrite(path, file.errorString());
        QSvgGenerator generator;
        generator.setOutputDevice(&file);
        generator.setViewBox(scene.bounds);
        generator.setSize(scene.bounds.size().toSize());
        QPainter painter(&generator);
        paintWhole(painter, scene, mode, palette);
        painter.end();
        if (!file.commit()) return cannotWrite(path, file.errorString());
        return {};
    }
    if (kind == "png") {
        const double scale = std::min(2.0, kMaxPixels / std::max(scene.bounds.width(), scene.bounds.height()));
        QImage image((scene.bounds.size() * scale).toSize().expandedTo({1, 1}), QImage::Format_ARGB32_Premultiplied);
        if (image.isNull()) return cannotWrite(path, QStringLiteral("the picture does not fit into memory"));
        QPainter painter(&image);
        painter.scale(scale, scale);
        painter.translate(-scene.bounds.topLeft());
        paintWhole(painter, scene, mode, palette);
        painter.end();
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || !image.save(&file, "PNG") || !file.commit()) return cannotWrite(path, file.errorString());
        return {};
    }
    return unsupported("a picture cannot be written as \"" + kind.toStdString() + "\"", path.toStdString(), {"Use a name that ends in .svg, .png or .dot."});
}

}  // namespace cutaway::ui
