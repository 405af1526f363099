#pragma once
// A line to click: icon, a title, and below it smaller what there is to know. To the keyboard and
// to screen readers it is an ordinary button.
#include <QIcon>
#include <QPushButton>

namespace cutaway::ui {

class LinkButton : public QPushButton {
    Q_OBJECT

  public:
    /// `elide`: where `more` is cut off when there is no room; for paths in the middle, as both ends tell them apart.
    LinkButton(const QIcon& icon, const QString& title, const QString& more, Qt::TextElideMode elide = Qt::ElideRight,
               QWidget* parent = nullptr);
    QString more() const { return m_more; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;

  private:
    QFont titleFont() const;
    QString m_more;
    Qt::TextElideMode m_elide;
};

}  // namespace cutaway::ui
