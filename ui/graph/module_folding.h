#pragma once
// Which modules of a graph are drawn as one box each. A module is closed or stands open by the depth of its name, and
// by what somebody opened or closed by hand. Forward and backward of a module are two boxes.
#include <QSet>
#include <QString>
#include <QStringList>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/snapshot.h"

namespace cutaway::ui {

struct ModuleFolding {
    static constexpr int kAll = 1000;  // deeper than any module

    /// Boxes that a graph may have before its modules are closed without being asked.
    int above = 150;
    /// Modules of at most so many names that hold other modules stand open: 0 closes all, kAll none. Unset: all, but of
    /// graphs that are large as many as leave the picture a map.
    std::optional<int> level;
    QSet<QString> opened, closed;  // by hand: keys

    bool operator==(const ModuleFolding&) const = default;
    void open(const QString& key);
    void close(const QString& key);
    /// As one line of text, for settings; what cannot be read of a text is left out.
    QString text() const;
    static ModuleFolding fromText(const QString& text);
};

/// "layer.0", "layer.0 (backward)".
QString moduleKey(const QString& path, bool backward);
/// "layer.0" of either.
QString pathOfModule(const QString& key);
bool isBackward(const QString& key);
/// The key of the module around it; empty if there is none.
QString moduleAround(const QString& key);

/// The calls that a module makes itself, as a part of it beside the modules in it: "layer.0.own calls".
QString ownCallsOf(const QString& path);

/// The modules of a graph's nodes, each once; answers which is closed and which stands open.
class ModuleBoxes {
  public:
    explicit ModuleBoxes(const UnionGraph& graph);

    /// Which level keeps the picture a map: the deepest with at most `most` boxes, of the nodes that `counts` says.
    int levelFor(const std::vector<bool>& counts, size_t most) const;
    /// By node, the key of the outermost closed module that it is in; empty for nodes that stand open. A module that
    /// holds `shown` stands open.
    std::vector<QString> closedAt(int level, const ModuleFolding& folding, NodeKey shown) const;
    /// Whether the module of a node, or one around it, was opened by hand.
    std::vector<bool> openedByHand(const ModuleFolding& folding) const;
    bool any() const { return !m_keys.empty(); }
    int depth() const;  // names of the deepest module

  private:
    const UnionGraph& m_graph;
    std::vector<int> m_moduleOf;      // by node; -1: none
    QSet<QString> m_holdsModules;     // keys
    std::vector<QStringList> m_keys;  // by module: keys from the outermost on to its own
};

}  // namespace cutaway::ui
