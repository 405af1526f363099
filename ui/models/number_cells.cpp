#include "ui/models/number_cells.h"

#include <QFontDatabase>

namespace cutaway::ui {

QFont numberFont() {
    static const QStringList families = QFontDatabase::systemFont(QFontDatabase::FixedFont).families();
    QFont font;
    font.setFamilies(families);
    font.setStyleHint(QFont::Monospace);
    return font;
}

QVariant numberHeader(int role) {
    return role == Qt::TextAlignmentRole ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
}

QVariant numberCell(int role) { return role == Qt::FontRole ? QVariant(numberFont()) : numberHeader(role); }

}  // namespace cutaway::ui
