#pragma once
// Turns the union graph of a step into what is drawn: chips instead of parameters, one box for each closed module, for
// each kept region that is folded away and for inputs that nothing reads, clusters by module. Pure functions over value
// structs; safe on any thread. Positions come later (graph_scene.h).
#include <QFont>
#include <QHash>
#include <QSet>
#include <QSizeF>
#include <QString>
#include <QStringList>
#include <memory>
#include <vector>

#include "cutaway/snapshot.h"
#include "ui/graph/graph_part.h"
#include "ui/graph/layout_problem.h"
#include "ui/graph/module_folding.h"

namespace cutaway::ui {

/// What somebody chose of a graph to be drawn, box by box.
struct OpenBoxes {
    QSet<quint64> revealed;  // ids that stay visible although kept
    ModuleFolding modules;
    NodeKey current = NodeKey::None;  // is drawn as itself, in no fold and no closed module
    std::optional<GraphPart> part;    // alone, without folds; all where the graph has no such part

    bool operator==(const OpenBoxes&) const = default;
};

struct PictureOptions : OpenBoxes {
    bool fold = true;
    int hops = 2;        // kept neighbours of a change that are shown
    int foldAbove = 40;  // drawn nodes up to which nothing is folded
    /// Measured, by node: a kernel's time is shared out evenly among what it computes. Null: not known.
    std::shared_ptr<const QHash<quint64, double>> microseconds;
    QFont font;
};

struct Picture {
    struct Chip {
        NodeKey id = NodeKey::None;
        QString text;
        Change change = Change::Unchanged;
        double width = 0;
    };
    /// What a box stands for. All but Node are folds, which open.
    enum class Box : uint8_t { Node, Unchanged, Module, Inputs, Unused };
    struct Node {
        NodeKey id = NodeKey::None;  // None: a fold
        Box box = Box::Node;
        Change change = Change::Unchanged;
        NodeRole role = NodeRole::Call;
        OpClass opClass = OpClass::Other;
        QString title, detail;  // "addmm.default" and "addmm · f32[8, 32]"
        QString more;           // of a module: what changed in it, and its time
        QString module;         // of a closed one, the one around it
        bool backward = false;
        QString key;           // of a closed module
        int equal = 1;         // closed modules of this structure, itself included
        size_t structure = 0;  // which equal ones share
        std::vector<Chip> chips;
        std::vector<NodeKey> members;  // of a fold
        std::vector<int> ops;          // of its calls, each once: places in Picture::ops
        bool moved = false;            // it is kept, but stands elsewhere
        int kernel = -1;               // UnionGraph's
        QSizeF size;
        int cluster = -1;
        bool isFold() const { return id == NodeKey::None; }
        bool isModule() const { return box == Box::Module; }
    };
    struct Edge {
        int from = 0, to = 0;
        Change change = Change::Unchanged;                       // Added or Removed
        bool rewired = false;                                    // both ends are kept or edited: only the wire changed
        NodeKey source = NodeKey::None, target = NodeKey::None;  // of the first wire, where an end is a fold
    };
    struct Cluster {
        QString title;  // a module's key
        int parent = -1;
    };
    std::vector<Node> nodes;  // topological
    std::vector<Edge> edges;
    std::vector<Cluster> clusters;
    std::vector<QString> ops;         // "aten.mm.default"
    int folded = 0;                   // nodes hidden in folds, but for closed modules
    int modules = 0;                  // closed ones
    int depth = 0;                    // names of the deepest module
    int level = ModuleFolding::kAll;  // the modules' depth from which on they are closed
    int total = 0;                    // nodes of the union graph
    bool changed = false;
    bool partly = false;                      // the part alone that was asked for
    std::shared_ptr<const UnionGraph> graph;  // what is drawn, for texts made on demand; may be null
    QHash<quint64, int> where;  // node id -> index in `nodes`: its own box, its fold, or the first box it is a chip on

    /// The first chip of a box that is not kept; None without any.
    NodeKey changedChip(int box) const;
    /// The operator of a single call; empty of other boxes.
    QString opOf(int box) const;
    int indexOf(NodeKey id) const { return where.value(packed(id), -1); }
    /// The box of a closed module; -1 if there is none.
    int indexOfModule(const QString& key) const;
    /// The innermost module around a box that is more than this box alone, so that closing it does something; empty if
    /// there is none.
    QString moduleToClose(int box) const;
};

Picture makePicture(const UnionGraph& graph, const PictureOptions& options);
/// The same of the part alone that the options ask for, with the graph that is drawn then.
Picture drawnOf(std::shared_ptr<const UnionGraph> graph, PictureOptions options);
/// One box in a sentence, for screen readers and tool tips. Made on demand: on large graphs these texts would cost more
/// than the picture.
QString spokenText(const Picture& picture, int node);
LayoutProblem problemOf(const Picture& picture);

/// "+", "−", "~" or "".
QString signOf(Change change);
/// The same, and "↕" of what only stands elsewhere.
QString signOf(const Picture::Node& node);
/// Of a pair that is not sure: "likely the same"; empty of one that is.
QString certaintyWord(Certainty certainty);
/// "aten.add.Tensor" -> "add.Tensor"; other namespaces stay.
QString shortOp(const std::string& op);
QString textOf(const std::string& utf8);

}  // namespace cutaway::ui
