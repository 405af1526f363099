#pragma once
// What a plugin's colouring says of the nodes of a graph, as marks on its picture.
#include <QObject>
#include <memory>
#include <optional>

#include "cutaway/plugins.h"
#include "ui/graph/heat_marks.h"
#include "ui/session/source.h"

namespace cutaway::ui {

class GraphColoring : public QObject {
    Q_OBJECT

  public:
    explicit GraphColoring(Source& source) : m_source(source) {}

    /// Asks the colouring ("PLUGIN.NAME") about the graph at a place.
    void color(const Place& place, const std::string& coloring);
    void clear();
    const std::optional<Place>& place() const { return m_place; }
    /// Null while there are none.
    std::shared_ptr<const HeatMarks> marks() const { return m_marks; }

  signals:
    void changed();
    /// What it came to, in a sentence.
    void said(const QString& sentence);

  private:
    Source& m_source;
    std::optional<Place> m_place;
    std::shared_ptr<const HeatMarks> m_marks;
    int m_generation = 0;
    JobQueue m_queue;  // last, so destroyed first
};

}  // namespace cutaway::ui
