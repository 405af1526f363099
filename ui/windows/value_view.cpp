#include "ui/windows/value_view.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QPainter>
#include <QSpinBox>
#include <QSplitter>
#include <QTableWidget>
#include <QToolTip>
#include <cmath>

#include "ui/models/number_cells.h"

namespace cutaway::ui {
namespace {

constexpr int64_t kPictureCells = 256, kRows = 64, kColumns = 16;
constexpr double kScaleHeight = 26;

QString number(double value) {
    if (std::isnan(value)) return QStringLiteral("NaN");
    if (std::isinf(value)) return value > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
    return QString::number(value, 'g', 4);
}

QColor between(const QColor& a, const QColor& b, double share) {
    const auto part = [&](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * share)); };
    return QColor(part(a.red(), b.red()), part(a.green(), b.green()), part(a.blue(), b.blue()));
}

}  // namespace

SlicePicture::SlicePicture(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Picture of the slice"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void SlicePicture::setSlice(ValueSlice slice) {
    m_slice = std::move(slice);
    m_reach = std::max(std::abs(m_slice.least), std::abs(m_slice.most));
    if (m_reach == 0) m_reach = 1;
    update();
}

QColor SlicePicture::colorOf(double value) const {
    const bool dark = palette().color(QPalette::Base).lightness() < 128;
    if (!std::isfinite(value)) return std::isnan(value) ? QColor("#c01c9a") : QColor("#2aa12a");
    const QColor middle(dark ? "#2b2f35" : "#f7f7f7");
    const QColor end = value < 0 ? QColor(dark ? "#6ea8f0" : "#1f5fb8") : QColor(dark ? "#f0716a" : "#b8231c");
    return between(middle, end, std::min(1.0, std::abs(value) / m_reach));
}

QRectF SlicePicture::area() const { return QRectF(rect()).adjusted(2, 2, -2, -kScaleHeight); }

void SlicePicture::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), palette().color(QPalette::Base));
    if (m_slice.numbers.empty()) return;
    QImage image(static_cast<int>(m_slice.columns), static_cast<int>(m_slice.rows), QImage::Format_RGB32);
    for (int row = 0; row < image.height(); ++row)
        for (int column = 0; column < image.width(); ++column)
            image.setPixelColor(column, row,
                                colorOf(m_slice.numbers[static_cast<size_t>(row * m_slice.columns + column)]));
    const QRectF box = area();
    painter.drawImage(box, image);
    const double wide = box.width() / image.width(), high = box.height() / image.height();
    // Told without the colour where there is room for a sign.
    if (wide >= 9 && high >= 9)
        for (size_t i = 0; i < m_slice.numbers.size(); ++i)
            if (const double value = m_slice.numbers[i]; !std::isfinite(value)) {
                const auto at = static_cast<int64_t>(i);
                const QRectF cell(box.left() + double(at % m_slice.columns) * wide,
                                  box.top() + double(at / m_slice.columns) * high, wide, high);
                painter.setPen(Qt::white);
                painter.drawText(cell, Qt::AlignCenter, std::isnan(value) ? QStringLiteral("×") : number(value));
            }
    paintScale(painter);
}

void SlicePicture::paintScale(QPainter& painter) const {
    const QRectF bar(60, height() - kScaleHeight + 7, std::max(20.0, width() - 260.0), 10);
    QLinearGradient gradient(bar.topLeft(), bar.topRight());
    for (const double at : {-1.0, -0.5, 0.0, 0.5, 1.0}) gradient.setColorAt((at + 1) / 2, colorOf(at * m_reach));
    painter.fillRect(bar, gradient);
    painter.setPen(palette().color(QPalette::Text));
    painter.setFont(numberFont());
    painter.drawRect(bar);
    const QRectF line(0, height() - kScaleHeight, width(), kScaleHeight);
    painter.drawText(QRectF(2, line.top(), 56, line.height()), Qt::AlignVCenter | Qt::AlignRight, number(-m_reach));
    painter.drawText(QRectF(bar.right() + 4, line.top(), 60, line.height()), Qt::AlignVCenter, number(m_reach));
    double at = bar.right() + 70;
    for (const auto& [word, value, count] : {std::tuple{tr("× NaN %1"), std::nan(""), m_slice.nans},
                                             std::tuple{tr("∞ %1"), HUGE_VAL, m_slice.infinities}}) {
        painter.fillRect(QRectF(at, bar.top(), 10, 10), colorOf(value));
        painter.drawText(QRectF(at + 14, line.top(), 80, line.height()), Qt::AlignVCenter, word.arg(count));
        at += 76;
    }
}

bool SlicePicture::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || m_slice.numbers.empty()) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const QRectF box = area();
    const auto column = static_cast<int64_t>((help->pos().x() - box.left()) / box.width() * double(m_slice.columns));
    const auto row = static_cast<int64_t>((help->pos().y() - box.top()) / box.height() * double(m_slice.rows));
    if (column < 0 || row < 0 || column >= m_slice.columns || row >= m_slice.rows) {
        QToolTip::hideText();
        return true;
    }
    QToolTip::showText(help->globalPos(),
                       tr("row %1, column %2: %3")
                           .arg(row * m_slice.everyRow)
                           .arg(column * m_slice.everyColumn)
                           .arg(number(m_slice.numbers[static_cast<size_t>(row * m_slice.columns + column)])),
                       this);
    return true;
}

ValueView::ValueView(QWidget* parent)
    : QWidget(parent),
      m_side(new QComboBox),
      m_row(new QHBoxLayout),
      m_words(new QLabel),
      m_picture(new SlicePicture),
      m_numbers(new QTableWidget) {
    m_side->addItems({tr("Value"), tr("Reference"), tr("Reference in f64"), tr("Difference from the reference")});
    m_side->setAccessibleName(tr("Which value is shown"));
    m_words->setWordWrap(true);
    m_words->setTextFormat(Qt::PlainText);
    m_words->setObjectName(QStringLiteral("valueWords"));
    m_numbers->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_numbers->setAccessibleName(tr("Numbers of the slice"));
    m_numbers->setTabKeyNavigation(false);
    m_row->addWidget(m_side);
    m_row->addStretch();
    auto* areas = new QSplitter(Qt::Vertical);
    areas->addWidget(m_picture);
    areas->addWidget(m_numbers);
    areas->setChildrenCollapsible(false);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addLayout(m_row);
    column->addWidget(m_words);
    column->addWidget(areas, 1);
    connect(m_side, &QComboBox::activated, this, &ValueView::sideChosen);
}

ValueSide ValueView::side() const { return static_cast<ValueSide>(m_side->currentIndex()); }

void ValueView::setHint(const QString& hint) {
    m_value.reset();
    makeSpinners();
    m_words->setText(hint);
    m_picture->setSlice({});
    m_numbers->setRowCount(0);
    m_numbers->setColumnCount(0);
}

void ValueView::setValue(const ShownValue& value, const QString& name) {
    if (!value.value) return setHint(value.problem);
    m_value = value.value;
    m_name = name;
    makeSpinners();
    showSlice();
}

void ValueView::makeSpinners() {
    for (QSpinBox* spinner : m_indices) delete spinner;
    m_indices.clear();
    if (!m_value) return;
    for (size_t dim = 0; dim + 2 < m_value->sizes().size(); ++dim) {
        auto* spinner = new QSpinBox;
        spinner->setRange(0, static_cast<int>(std::max<int64_t>(0, m_value->sizes()[dim] - 1)));
        spinner->setAccessibleName(tr("Index of dim %1").arg(dim));
        spinner->setToolTip(tr("Index of dim %1, 0 to %2").arg(dim).arg(spinner->maximum()));
        m_row->insertWidget(m_row->count() - 1, spinner);
        connect(spinner, &QSpinBox::valueChanged, this, &ValueView::showSlice);
        m_indices.push_back(spinner);
    }
}

void ValueView::showSlice() {
    std::vector<int64_t> at;
    for (const QSpinBox* spinner : m_indices) at.push_back(spinner->value());
    ValueSlice slice = m_value->slice(at, kPictureCells, kPictureCells);
    m_words->setText(tr("%1: %2; from %3 to %4, %5 NaN, %6 infinite")
                         .arg(m_name, QString::fromStdString(m_value->type()), number(slice.least), number(slice.most))
                         .arg(slice.nans)
                         .arg(slice.infinities));
    m_picture->setSlice(std::move(slice));
    const ValueSlice few = m_value->slice(at, kRows, kColumns);
    m_numbers->setRowCount(static_cast<int>(few.rows));
    m_numbers->setColumnCount(static_cast<int>(few.columns));
    for (int row = 0; row < few.rows; ++row) {
        m_numbers->setVerticalHeaderItem(row, new QTableWidgetItem(QString::number(row * few.everyRow)));
        for (int column = 0; column < few.columns; ++column) {
            if (row == 0)
                m_numbers->setHorizontalHeaderItem(column,
                                                   new QTableWidgetItem(QString::number(column * few.everyColumn)));
            auto* cell = new QTableWidgetItem(number(few.numbers[static_cast<size_t>(row * few.columns + column)]));
            cell->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            cell->setFont(numberFont());
            m_numbers->setItem(row, column, cell);
        }
    }
    m_numbers->resizeColumnsToContents();
}

}  // namespace cutaway::ui
