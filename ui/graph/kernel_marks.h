#pragma once
// What computes the nodes of a run's graphs, as marks on their pictures.
#include <QHash>
#include <QSet>
#include <QString>
#include <vector>

#include "cutaway/kernel_calls.h"

namespace cutaway::ui {

class KernelMarks {
  public:
    explicit KernelMarks(std::vector<KernelCall> calls);

    const std::vector<KernelCall>& calls() const { return m_calls; }
    /// Places of the calls that compute a node, or what came in its place.
    const std::vector<int>& callsOf(NodeKey node) const;
    /// All nodes, of any graph of the run, that have a call in common with this one.
    QSet<quint64> together(NodeKey node) const;
    /// "k3", "oneDNN": what computes the node itself, in a graph (empty: any); empty if nothing does.
    QString shortName(NodeKey node, const QString& graphName) const;
    /// Time of all calls; 0 until they are timed.
    double microseconds() const { return m_microseconds; }

  private:
    std::vector<KernelCall> m_calls;
    QHash<quint64, std::vector<int>> m_places;
    double m_microseconds = 0;
};

/// "backward/kernel3", "mm (oneDNN)": its name where it has one, else its kind.
QString nameOf(const KernelCall& call);

/// Of the picture of one graph.
struct KernelNames {
    std::shared_ptr<const KernelMarks> marks;  // null: not known
    QString graphName;
    bool named = false;  // boxes have the names of their kernels: the graph is scheduled

    bool operator==(const KernelNames&) const = default;
};

}  // namespace cutaway::ui
