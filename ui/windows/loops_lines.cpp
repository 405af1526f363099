// The Loops window's way from a node to its line of C++, and back.
#include <QSortFilterProxyModel>
#include <QTabWidget>
#include <QTableView>
#include <algorithm>

#include "ui/models/kernel_lines.h"
#include "ui/windows/code_view.h"
#include "ui/windows/loops_window.h"

namespace cutaway::ui {

void LoopsWindow::showCode(const QString& kernel) {
    m_code->setCurrentWidget(m_source);
    if (const RunId run = m_selection.place().run; m_query.run() != run) m_query.list(run);
    m_query.choose(kernel);
    const int row = m_model.rowOf(kernel);
    if (row < 0) return;  // the list is on its way, and keeps what is chosen
    m_following = true;
    m_table->selectRow(m_sorted->mapFromSource(m_model.index(row, 0)).row());
    m_following = false;
    markNode();
}

/// Of the calls that share the kernel the one that computes the current node, else the first; null while it is not
/// known.
const KernelCall* LoopsWindow::callOnShow() const {
    const auto marks = m_query.run() ? m_controller.kernelQuery().marks(*m_query.run()) : nullptr;
    if (!marks) return nullptr;
    const std::string kernel = m_query.kernel().toStdString();
    const auto& calls = marks->calls();
    for (const int place : marks->callsOf(m_selection.node()))
        if (calls[static_cast<size_t>(place)].kernel == kernel) return &calls[static_cast<size_t>(place)];
    const auto first =
        std::find_if(calls.begin(), calls.end(), [&](const auto& call) { return call.kernel == kernel; });
    return first == calls.end() ? nullptr : &*first;
}

/// Where the current node's value is written; what is fused away has the kernel's first line.
void LoopsWindow::markNode() {
    const KernelCall* const call = callOnShow();
    const NodeKey node = m_selection.node();
    const auto isIn = [node](const std::vector<NodeKey>& nodes) {
        return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    };
    if (!call || node == NodeKey::None || (!isIn(call->nodes) && !isIn(call->replaced) && !isIn(call->buffers)))
        return m_source->markLine(-1);
    const auto buffer = std::find(call->buffers.begin(), call->buffers.end(), node);
    if (buffer == call->buffers.end() || !m_query.forms()) return m_source->markLine(0);
    const auto number = static_cast<size_t>(buffer - call->buffers.begin());
    m_source->markLine(std::max(0, lineOfBuffer(m_query.forms()->lines, number)));
}

void LoopsWindow::chooseLine(int line) {
    const KernelCall* const call = callOnShow();
    if (!call || !m_query.forms()) return;
    const auto buffer = bufferOfLine(m_query.forms()->lines, line);
    if (!buffer || *buffer >= call->buffers.size() || call->buffers[*buffer] == NodeKey::None)
        return emit message(tr("This line writes and reads no node's value."));
    m_selection.setNode(call->buffers[*buffer]);
}

}  // namespace cutaway::ui
