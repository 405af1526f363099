#pragma once
// What all windows of the main window have in common: they are made from a row of the table (window_table.h), they show
// the current place, and they ask for what is not theirs to do by these signals. None knows another.
#include <QDockWidget>
#include <optional>
#include <span>

#include "ui/session/stepper.h"

namespace cutaway::ui {

class Window;

/// What a window is made of.
struct WindowParts {
    SessionController& controller;
    Selection& selection;
    Stepper& stepper;
};

enum class Area { Left, Centre, Right, Bottom };

/// A key that a window understands by itself, for the list of all keys. No menu names it.
struct KeyHint {
    const char *what, *key;
};

struct WindowRow {
    const char* name;  // for settings and the command line
    const char* title;
    Area area;        // where it stands at first: a tab of that area, in the order of the table
    const char* key;  // shows it; "" for none
    Window* (*make)(const WindowRow& row, const WindowParts& parts);
    std::span<const KeyHint> keys = {};
    bool needsModel = true;  // it has nothing to show without one
};

class Window : public QDockWidget {
    Q_OBJECT

  public:
    explicit Window(const WindowRow& row);
    const WindowRow& row() const { return m_row; }
    /// Whether what belongs to the current place is on the screen.
    virtual bool isSettled() const { return true; }
    /// Work of the window's own that is listed in the status bar while it runs, and how to cancel it.
    virtual std::optional<Activity> activity() const { return {}; }
    virtual void stopActivity() {}

  signals:
    void message(const QString& text);
    /// The result of isSettled() may have changed.
    void settled();
    void activityChanged();
    /// The user asks for a node's context menu; `at` on the screen.
    void menuWanted(cutaway::NodeKey id, QPoint at);
    /// The user wants to see a node in the Node window.
    void nodeOpened(cutaway::NodeKey id);
    /// The user wants to see a node in the Graph window.
    void nodeWanted(cutaway::NodeKey id);
    /// The user wants to see the code of a kernel, and in it the current node.
    void kernelWanted(const QString& kernel);
    /// The user wants to see these states beside each other.
    void statesWanted(const std::vector<cutaway::Place>& places);
    /// The user wants to know which rewrite broke the graph.
    void bisectWanted();
    /// The user wants the steps and rewrites listed that match these words.
    void rewritesWanted(const QString& words);

  private:
    const WindowRow& m_row;
};

}  // namespace cutaway::ui
