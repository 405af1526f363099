#pragma once
// Fusion, but for the frames of check boxes: Fusion draws them darker than the window, which on a dark window cannot be
// seen.
#include <QPainter>
#include <QProxyStyle>
#include <QStyleOption>

namespace cutaway::ui {

class CheckBoxStyle : public QProxyStyle {
  public:
    CheckBoxStyle() : QProxyStyle(QStringLiteral("Fusion")) {}

    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override {
        QProxyStyle::drawPrimitive(element, option, painter, widget);
        if (element != PE_IndicatorCheckBox || option->palette.color(QPalette::Window).lightness() >= 128) return;
        painter->save();
        painter->setPen(option->palette.color(option->state & State_Enabled ? QPalette::Active : QPalette::Disabled,
                                              QPalette::Text));
        painter->setBrush(Qt::NoBrush);
        painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
        painter->restore();
    }
};

}  // namespace cutaway::ui
