#pragma once
// The Minify window: what counts as failing, size against trials, the smallest graph so far as a picture and as text.
#include "ui/windows/window.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSplitter;

namespace cutaway::ui {

class GraphView;
class MinifySettings;
class PlotView;

class MinifyWindow : public Window {
    Q_OBJECT

  public:
    MinifyWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();
    std::optional<Activity> activity() const override;
    void stopActivity() override;
    /// Asks for what a search needs.
    void prepare();
    /// Begins, or goes on where the folder was left.
    void start();

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    QWidget* makeForm();
    void connectParts();
    MinifyOptions options() const;
    void chooseFolder();
    void proposeFolder();
    void openResult();
    void followModel();
    void followCheck();
    void showState();
    void showBest();
    void showPlot();
    QString summary() const;

    SessionController& m_controller;
    Selection& m_selection;
    MinifySearch& m_search;
    QComboBox *m_check, *m_backend;
    QLineEdit *m_command, *m_folder, *m_signature;
    MinifySettings* m_settings;
    QPushButton *m_browse, *m_start, *m_afresh, *m_open, *m_back;
    QLabel* m_summary;
    PlotView* m_plot;
    GraphView* m_graph;
    QPlainTextEdit *m_text, *m_log;
    QSplitter* m_areas;
    bool m_restart = false;
    /// A result that was opened, what it fails with, and what it was made of.
    struct OpenedResult {
        QString path, modelPath, modelGraph;
        CompileRequest request;
    };
    std::optional<OpenedResult> m_opened;
};

}  // namespace cutaway::ui
