#include "engine/trials/guilty_pass.h"

#include "engine/passes/whole_program.h"

namespace cutaway {
namespace {

class Guilty {
  public:
    Guilty(const CompileTrace& trace, int first, int end, const IsWrong& isWrong) : m_trace(trace), m_isWrong(isWrong) {
        for (int i = std::max(0, first); i < end && i < static_cast<int>(trace.steps.size()); ++i)
            if (at(i).info.state == StepState::Changed) m_changed.push_back(i);
    }

    std::string expected(const std::string& pass) const {
        for (const int step : m_changed)
            if (pathOf(step) == pass && !isWrong(step, false) && isWrong(step, true)) return pass;
        return {};
    }

    std::string any() const {
        if (m_changed.empty() || isWrong(m_changed.front(), false) || !isWrong(m_changed.back(), true)) return {};
        size_t good = 0, bad = m_changed.size();  // before the change of that number; `bad`: behind the last
        while (bad - good > 1) {
            const size_t middle = good + (bad - good) / 2;
            (isWrong(m_changed[middle], false) ? bad : good) = middle;
        }
        return pathOf(m_changed[good]);
    }

  private:
    const Step& at(int step) const { return m_trace.steps[static_cast<size_t>(step)]; }
    std::string pathOf(int step) const { return at(step).info.stage + "/" + at(step).info.name; }
    /// A graph that cannot be had is no proof of anything.
    bool isWrong(int step, bool after) const {
        const auto graph = wholeAt(m_trace, step, after ? at(step).after : at(step).before, after);
        return graph && m_isWrong(*graph);
    }

    const CompileTrace& m_trace;
    const IsWrong& m_isWrong;
    std::vector<int> m_changed;
};

}  // namespace

std::string guiltyPass(const CompileTrace& trace, int first, int end, const std::string& expected,
                       const IsWrong& isWrong) {
    const Guilty search(trace, first, end, isWrong);
    return expected.empty() ? search.any() : search.expected(expected);
}

}  // namespace cutaway
