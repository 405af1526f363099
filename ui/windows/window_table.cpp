#include "ui/windows/window_table.h"

#include "ui/windows/breakpoints_window.h"
#include "ui/windows/cache_window.h"
#include "ui/windows/differences_window.h"
#include "ui/windows/explain_window.h"
#include "ui/windows/filmstrip_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/kernels_window.h"
#include "ui/windows/log_window.h"
#include "ui/windows/loops_window.h"
#include "ui/windows/memory_window.h"
#include "ui/windows/minify_window.h"
#include "ui/windows/node_window.h"
#include "ui/windows/numerics_window.h"
#include "ui/windows/operators_window.h"
#include "ui/windows/package_window.h"
#include "ui/windows/partition_window.h"
#include "ui/windows/plugins_window.h"
#include "ui/windows/results_window.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"

namespace cutaway::ui {
namespace {

template <class W>
Window* make(const WindowRow& row, const WindowParts& parts) {
    return new W(row, parts);
}

const WindowRow kWindows[] = {
    {"steps", QT_TRANSLATE_NOOP("cutaway::ui", "Steps"), Area::Left, "Alt+1", make<StepsWindow>, StepsWindow::keys()},
    {"graph", QT_TRANSLATE_NOOP("cutaway::ui", "Graph"), Area::Centre, "Alt+2", make<GraphWindow>, GraphWindow::keys()},
    {"text", QT_TRANSLATE_NOOP("cutaway::ui", "Text"), Area::Centre, "Alt+3", make<TextWindow>},
    {"node", QT_TRANSLATE_NOOP("cutaway::ui", "Node"), Area::Right, "Alt+4", make<NodeWindow>},
    {"explain", QT_TRANSLATE_NOOP("cutaway::ui", "Explain"), Area::Right, "Alt+5", make<ExplainWindow>},
    {"partition", QT_TRANSLATE_NOOP("cutaway::ui", "Partition"), Area::Right, "Alt+0", make<PartitionWindow>,
     PartitionWindow::keys()},
    {"log", QT_TRANSLATE_NOOP("cutaway::ui", "Log"), Area::Bottom, "Alt+6", make<LogWindow>, {}, false},
    {"kernels", QT_TRANSLATE_NOOP("cutaway::ui", "Kernels"), Area::Centre, "Alt+7", make<KernelsWindow>},
    {"loops", QT_TRANSLATE_NOOP("cutaway::ui", "Loops"), Area::Centre, "Alt+P", make<LoopsWindow>, LoopsWindow::keys()},
    {"memory", QT_TRANSLATE_NOOP("cutaway::ui", "Memory"), Area::Centre, "Alt+Y", make<MemoryWindow>,
     MemoryWindow::keys()},
    {"filmstrip", QT_TRANSLATE_NOOP("cutaway::ui", "Filmstrip"), Area::Centre, "", make<FilmstripWindow>},
    {"package",
     QT_TRANSLATE_NOOP("cutaway::ui", "Package"),
     Area::Centre,
     "Alt+Shift+P",
     make<PackageWindow>,
     {},
     false},
    {"results", QT_TRANSLATE_NOOP("cutaway::ui", "Results"), Area::Bottom, "Alt+8", make<ResultsWindow>},
    {"numerics", QT_TRANSLATE_NOOP("cutaway::ui", "Numerics"), Area::Bottom, "Alt+N", make<NumericsWindow>,
     NumericsWindow::keys()},
    {"minify", QT_TRANSLATE_NOOP("cutaway::ui", "Minify"), Area::Bottom, "Alt+M", make<MinifyWindow>,
     MinifyWindow::keys()},
    {"breakpoints", QT_TRANSLATE_NOOP("cutaway::ui", "Breakpoints"), Area::Bottom, "Alt+B", make<BreakpointsWindow>,
     BreakpointsWindow::keys(), false},
    {"operators", QT_TRANSLATE_NOOP("cutaway::ui", "Operators"), Area::Bottom, "Alt+K", make<OperatorsWindow>,
     OperatorsWindow::keys(), false},
    {"cache", QT_TRANSLATE_NOOP("cutaway::ui", "Cache"), Area::Bottom, "", make<CacheWindow>, CacheWindow::keys(),
     false},
    {"plugins", QT_TRANSLATE_NOOP("cutaway::ui", "Plugins"), Area::Bottom, "", make<PluginsWindow>, {}, false},
    {"differences", QT_TRANSLATE_NOOP("cutaway::ui", "Differences"), Area::Bottom, "Alt+J", make<DifferencesWindow>},
    {"search", QT_TRANSLATE_NOOP("cutaway::ui", "Search"), Area::Bottom, "Alt+9", make<SearchWindow>},
};

}  // namespace

std::span<const WindowRow> windowRows() { return kWindows; }

QStringList windowNames() {
    QStringList names;
    for (const WindowRow& row : kWindows) names << QString::fromLatin1(row.name);
    return names;
}

}  // namespace cutaway::ui
