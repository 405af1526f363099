#pragma once
// One value of a run: its two last dims as a picture and as numbers, with an index for each other dim.
#include <QWidget>

#include "ui/session/checked_runs.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QSpinBox;
class QTableWidget;

namespace cutaway::ui {

/// A slice in colours: blue below zero, red above, NaN and infinities with signs of their own.
class SlicePicture : public QWidget {
    Q_OBJECT

  public:
    explicit SlicePicture(QWidget* parent = nullptr);
    void setSlice(ValueSlice slice);
    const ValueSlice& slice() const { return m_slice; }
    QColor colorOf(double value) const;
    QSize sizeHint() const override { return {260, 220}; }
    QSize minimumSizeHint() const override { return {120, 100}; }

  protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

  private:
    QRectF area() const;
    void paintScale(QPainter& painter) const;
    ValueSlice m_slice;
    double m_reach = 1;  // the largest magnitude
};

class ValueView : public QWidget {
    Q_OBJECT

  public:
    explicit ValueView(QWidget* parent = nullptr);
    void setValue(const ShownValue& value, const QString& name);
    void setHint(const QString& hint);
    ValueSide side() const;
    SlicePicture& picture() { return *m_picture; }

  signals:
    void sideChosen();

  private:
    void makeSpinners();
    void showSlice();

    std::shared_ptr<const NodeValue> m_value;
    QString m_name;
    QComboBox* m_side;
    QHBoxLayout* m_row;
    QLabel* m_words;
    std::vector<QSpinBox*> m_indices;
    SlicePicture* m_picture;
    QTableWidget* m_numbers;
};

}  // namespace cutaway::ui
