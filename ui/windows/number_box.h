#pragma once
#include <QDoubleSpinBox>

namespace cutaway::ui {

/// A field for a number that takes both a point and a comma before decimals, whatever the locale writes.
class NumberBox : public QDoubleSpinBox {
  public:
    QValidator::State validate(QString& text, int& position) const override {
        for (const QChar point : {QChar('.'), QChar(',')}) text.replace(point, locale().decimalPoint());
        return QDoubleSpinBox::validate(text, position);
    }
};

}  // namespace cutaway::ui
