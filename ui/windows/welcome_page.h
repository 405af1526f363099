#pragma once
// What a window without a model shows: how to open one, those that were open before, the samples, and what can be
// opened.
#include <QScrollArea>

class QBoxLayout;
class QGridLayout;
class QLabel;

namespace cutaway::ui {

class WelcomePage : public QScrollArea {
    Q_OBJECT

  public:
    explicit WelcomePage(QWidget* parent = nullptr);
    /// Reads the recent files and samples again.
    void refresh();

  signals:
    void openWanted();
    void folderWanted();
    void fileWanted(const QString& path);
    void keysWanted();

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    QWidget* makeTitle();
    QWidget* makeStart();
    QWidget* makeFormats();
    void arrangeFormats(bool narrow);
    QWidget* makeKeys();
    void fillSamples();
    void fillRecent();

    QBoxLayout *m_columns, *m_samples, *m_recent;
    QGridLayout* m_formatGrid = nullptr;
    int m_neededWide = 0;  // pixels that the two columns and the formats beside each other take
    QVector<std::pair<QLabel*, QLabel*>> m_formats;  // what, and how it is made
};

}  // namespace cutaway::ui
