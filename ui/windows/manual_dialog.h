#pragma once
// The manual: what `cutaway-cli manual` prints, page by page, with a field that finds words in them.
#include <QDialog>
#include <QProcess>
#include <QVector>

class QLabel;
class QLineEdit;
class QListWidget;
class QTextBrowser;

namespace cutaway::ui {

struct ManualPage {
    QString title, text;  // Markdown
    int level = 1;        // of its heading
};
/// A page for each heading of up to three signs that is not in a block of code.
QVector<ManualPage> manualPages(const QString& manual);

class ManualDialog : public QDialog {
    Q_OBJECT

  public:
    explicit ManualDialog(QWidget* parent = nullptr);
    /// Chooses the page of this title, once the pages are there; without one the first stays.
    void showPage(const QString& title);

  private:
    void read();
    void filter();
    void showCurrent();
    void follow(const QUrl& link);
    void fail(const QString& problem);

    QVector<ManualPage> m_pages;
    QString m_wanted;  // the title of a page that was asked for before the pages were there
    QLineEdit* m_field;
    QListWidget* m_list;
    QTextBrowser* m_page;
    QLabel* m_problem;
    QProcess m_printer;
};

}  // namespace cutaway::ui
