#pragma once
// A memory plan as rectangles: calls across, bytes up. The arena stands at the bottom, values with memory of their own
// above it. Knows nothing of pixels.
#include <QString>
#include <memory>

#include "cutaway/memory.h"

namespace cutaway::ui {

class MemoryChart {
  public:
    MemoryChart() = default;
    explicit MemoryChart(std::shared_ptr<const MemoryPlan> plan) : m_plan(std::move(plan)) {}

    bool isEmpty() const { return !m_plan || m_plan->calls.empty(); }
    const MemoryPlan& plan() const { return *m_plan; }
    int calls() const { return m_plan ? static_cast<int>(m_plan->calls.size()) : 0; }
    int values() const { return m_plan ? static_cast<int>(m_plan->values.size()) : 0; }
    const MemoryValue& at(int value) const { return m_plan->values[static_cast<size_t>(value)]; }
    const MemoryCall& call(int call) const { return m_plan->calls[static_cast<size_t>(call)]; }
    /// Bytes from the bottom to the top, and to the lower edge of a value.
    int64_t height() const { return m_plan ? m_plan->arena + m_plan->own : 0; }
    int64_t bottomOf(int value) const;
    /// -1 where nothing lives.
    int valueAt(int call, int64_t byte) const;
    /// The node's own value, the largest where it has several, else the largest of the call that computes it; -1 if
    /// nothing has it.
    int valueOf(NodeKey node) const;
    /// The next one above or below among those that live at the call; the same where there is none.
    int neighbour(int value, int call, bool above) const;
    /// "relu · f32[8, 16] · 512 B · calls 3 to 7 · kernel2 (pointwise)".
    QString said(int value) const;

  private:
    std::shared_ptr<const MemoryPlan> m_plan;
};

/// "library", "kernel, returned", "fallback, own memory".
QString makerText(const MemoryPlan& plan, const MemoryValue& value);

}  // namespace cutaway::ui
