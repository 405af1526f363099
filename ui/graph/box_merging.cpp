#include "ui/graph/box_merging.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>

namespace cutaway::ui {
namespace {

/// The graph of the boxes made so far.
class BoxGraph {
  public:
    int add() {
        m_users.emplace_back();
        m_seen.push_back(0);
        return static_cast<int>(m_users.size()) - 1;
    }
    bool knows(int from, int to) const { return m_known.count(edge(from, to)) > 0; }
    void connect(int from, int to) {
        if (from != to && m_known.insert(edge(from, to)).second) m_users[static_cast<size_t>(from)].push_back(to);
    }
    /// Whether an edge path leads from `start` to any of `ends`.
    bool reaches(int start, const std::vector<int>& ends) {
        ++m_round;
        m_stack.assign(1, start);
        while (!m_stack.empty()) {
            const int at = m_stack.back();
            m_stack.pop_back();
            if (std::find(ends.begin(), ends.end(), at) != ends.end()) return true;
            for (const int user : m_users[static_cast<size_t>(at)]) {
                if (m_seen[static_cast<size_t>(user)] == m_round) continue;
                m_seen[static_cast<size_t>(user)] = m_round;
                m_stack.push_back(user);
            }
        }
        return false;
    }

  private:
    static uint64_t edge(int from, int to) {
        return static_cast<uint64_t>(static_cast<uint32_t>(from)) << 32 | static_cast<uint32_t>(to);
    }
    std::vector<std::vector<int>> m_users;
    std::unordered_set<uint64_t> m_known;
    std::vector<int> m_seen, m_stack;
    int m_round = 0;
};

}  // namespace

std::vector<int> mergeBoxes(const std::vector<std::vector<int>>& inputs, const std::vector<int>& wish) {
    BoxGraph boxes;
    std::vector<int> box(inputs.size(), -1), latest;  // of each wish, the box that was made last
    for (size_t i = 0; i < inputs.size(); ++i) {
        std::vector<int> from;  // boxes it reads, but for those that its wish's box reads already
        const int wanted = wish[i];
        if (wanted >= static_cast<int>(latest.size())) latest.resize(static_cast<size_t>(wanted) + 1, -1);
        const int shared = wanted < 0 ? -1 : latest[static_cast<size_t>(wanted)];
        for (const int input : inputs[i]) {
            const int other = box[static_cast<size_t>(input)];  // -1: the union of two orders may hold a cycle
            if (other >= 0 && other != shared && (shared < 0 || !boxes.knows(other, shared))) from.push_back(other);
        }
        const bool joins = shared >= 0 && (from.empty() || !boxes.reaches(shared, from));
        box[i] = joins ? shared : boxes.add();
        if (wanted >= 0) latest[static_cast<size_t>(wanted)] = box[i];
        if (joins || wanted < 0) {
            for (const int other : from) boxes.connect(other, box[i]);
            continue;
        }
        for (const int input : inputs[i])
            if (const int other = box[static_cast<size_t>(input)]; other >= 0) boxes.connect(other, box[i]);
    }
    return box;
}

}  // namespace cutaway::ui
