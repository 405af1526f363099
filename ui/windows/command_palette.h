#pragma once
// Ctrl+K: one field for everything that can be reached: actions, passes, nodes, recent files. Every word typed must
// occur; earlier occurrences first.
#include <QDialog>
#include <QVector>
#include <functional>

class QLineEdit;
class QListWidget;

namespace cutaway::ui {

struct PaletteEntry {
    QString kind, text;
    std::function<void()> run;
};

/// Indices of the entries that match, best first, at most `limit`.
QVector<int> rankEntries(const QVector<PaletteEntry>& entries, const QString& typed, int limit);

class CommandPalette : public QDialog {
    Q_OBJECT

  public:
    CommandPalette(QVector<PaletteEntry> entries, QWidget* parent = nullptr);

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void refresh();
    void runCurrent();

    QVector<PaletteEntry> m_entries;
    QLineEdit* m_field;
    QListWidget* m_list;
};

}  // namespace cutaway::ui
