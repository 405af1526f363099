#pragma once
// Lets the user choose the columns of a table or tree: a menu on the header hides and shows them, dragging reorders
// them, and both are kept between runs of the program.
#include <QHeaderView>
#include <QObject>
#include <QSet>

namespace cutaway::ui {

class Columns : public QObject {
    Q_OBJECT

  public:
    /// `name`: the key in the settings. `hidden`: columns that are off at first. The first column is always shown.
    Columns(QHeaderView* header, const QString& name, const QSet<int>& hidden = {});

    /// Whether the window has room (or a use) for the column; what the user hid stays hidden either way.
    void setRoom(int column, bool room);
    /// Shows or hides the column as the user wants it, which is remembered.
    void setShown(int column, bool shown);
    /// In the order of the screen, with a check mark at those that are shown.
    QMenu* makeMenu(QWidget* parent);

  private:
    void apply(int column);
    void save() const;

    QHeaderView* m_header;
    QString m_key;
    QSet<int> m_hidden, m_standardHidden, m_noRoom;
};

}  // namespace cutaway::ui
