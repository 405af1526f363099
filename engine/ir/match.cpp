#include "engine/ir/match.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

#include "engine/ir/match_side.h"

namespace cutaway {
namespace {

constexpr int kNone = -1;

/// The node of a key that only one of the candidates has; kNone where several have it.
using OnlyOne = std::unordered_map<MatchKey, int>;

/// Grows pairs from what is unique on both sides: the pair that most around it speaks for comes next. Where two nodes
/// have the same to say for themselves, they wait until nothing else is left, and order decides.
class Matcher {
  public:
    Matcher(const Graph& before, const Graph& after, uint32_t sameBelow)
        : m_a(before),
          m_b(after),
          m_partner(m_a.size(), kNone),
          m_other(m_b.size(), kNone),
          m_same(m_b.size()),
          m_contested(m_b.size()) {
        pairSameNodes(sameBelow);
        pairOutputs();
        pairUnique();
        weighNames();
    }

    GraphMatch match() {
        for (size_t a = 0; a < m_a.size(); ++a)
            if (m_partner[a] != kNone) suggestAround(static_cast<int>(a), m_partner[a]);
        grow();
        pairByOrder();
        return result();
    }

  private:
    struct Candidate {
        double score;
        int a, b;
        /// The best comes last; of equal ones, the first in order.
        bool operator<(const Candidate& other) const {
            return std::tuple(score, -a, -b) < std::tuple(other.score, -other.a, -other.b);
        }
    };

    void pair(int a, int b) {
        m_partner[static_cast<size_t>(a)] = b;
        m_other[static_cast<size_t>(b)] = a;
    }
    bool isFree(int a, int b) const {
        return m_partner[static_cast<size_t>(a)] == kNone && m_other[static_cast<size_t>(b)] == kNone;
    }

    // What is certain without looking around.
    void pairSameNodes(uint32_t below) {
        if (below == 0) return;
        std::unordered_map<uint32_t, int> known;
        for (size_t a = 0; a < m_a.size(); ++a)
            if (const uint32_t id = index(m_a.nodes[a]->id()); id < below) known.emplace(id, static_cast<int>(a));
        for (size_t b = 0; b < m_b.size(); ++b)
            if (const auto found = known.find(index(m_b.nodes[b]->id())); found != known.end()) {
                pair(found->second, static_cast<int>(b));
                m_same[b] = true;
            }
    }
    void pairOutputs() {
        const auto output = [](const MatchSide& side) {
            for (size_t i = side.size(); i-- > 0;)
                if (side.nodes[i]->isOutput()) return static_cast<int>(i);
            return kNone;
        };
        const int a = output(m_a), b = output(m_b);
        if (a != kNone && b != kNone && isFree(a, b)) pair(a, b);
    }
    static OnlyOne onlyOnes(const std::vector<MatchKey>& keys, const std::vector<int>& partners) {
        OnlyOne out;
        for (size_t i = 0; i < keys.size(); ++i)
            if (partners[i] == kNone)
                if (const auto [at, fresh] = out.emplace(keys[i], static_cast<int>(i)); !fresh) at->second = kNone;
        return out;
    }
    /// For each node of `before` the only one of `after` with its key; kNone if there are none or several, on either
    /// side.
    std::vector<int> unique(const std::vector<MatchKey>& a, const std::vector<MatchKey>& b) const {
        const OnlyOne left = onlyOnes(a, m_partner), right = onlyOnes(b, m_other);
        std::vector<int> out(a.size(), kNone);
        for (const auto& [key, node] : left)
            if (const auto found = right.find(key); node != kNone && found != right.end())
                out[static_cast<size_t>(node)] = found->second;
        return out;
    }
    /// Nodes whose whole past or future is the same and happens once. Where the two contradict each other, as after a
    /// layer that was put in among equal ones, neither counts.
    void pairUnique() {
        const std::vector<int> exact = unique(m_a.whole, m_b.whole);
        for (size_t a = 0; a < exact.size(); ++a)
            if (exact[a] != kNone) pair(static_cast<int>(a), exact[a]);
        const std::vector<int> past = unique(m_a.from, m_b.from), future = unique(m_a.to, m_b.to);
        std::vector<int> wanted(m_b.size(), kNone);  // by whom
        const auto want = [&](int a, int b) {
            if (b == kNone) return;
            int& by = wanted[static_cast<size_t>(b)];
            if (by != kNone && by != a) m_contested[static_cast<size_t>(b)] = true;
            by = a;
        };
        for (size_t a = 0; a < m_a.size(); ++a) {
            want(static_cast<int>(a), past[a]);
            want(static_cast<int>(a), future[a]);
            if (past[a] == kNone || future[a] == kNone || past[a] == future[a]) continue;
            m_contested[static_cast<size_t>(past[a])] = m_contested[static_cast<size_t>(future[a])] = true;
        }
        for (size_t a = 0; a < m_a.size(); ++a)
            for (const int b : {past[a], future[a]})
                if (b != kNone && !m_contested[static_cast<size_t>(b)] && isFree(static_cast<int>(a), b))
                    pair(static_cast<int>(a), b);
    }
    /// Names that most nodes share whose pairs are known already, come from one tracing, and tell twins apart.
    void weighNames() {
        int known = 0, alike = 0;
        for (size_t a = 0; a < m_a.size(); ++a)
            if (m_partner[a] != kNone && !m_a.nodes[a]->isOutput()) {
                ++known;
                alike += m_a.nodes[a]->name() == m_b.nodes[static_cast<size_t>(m_partner[a])]->name();
            }
        m_nameWeight = alike * 4 > known * 3 ? 0.75 : 0;
    }

    // What is around a pair.
    void suggest(int a, int b) {
        if (!isFree(a, b)) return;
        const double points = score(a, b);
        if (points <= 0) return;
        m_queue.push({points, a, b});
        m_rivals[static_cast<size_t>(a)].insert(b);
        m_suitors[static_cast<size_t>(b)].insert(a);
    }
    void suggestAround(int a, int b) {
        const auto &left = m_a.operands[static_cast<size_t>(a)], &right = m_b.operands[static_cast<size_t>(b)];
        for (size_t slot = 0; slot < std::min(left.size(), right.size()); ++slot) suggest(left[slot], right[slot]);
        // One call more or less on one side, between two that are the same.
        for (size_t slot = 0; slot < std::min(left.size(), right.size()); ++slot) {
            for (const int read : m_b.operands[static_cast<size_t>(right[slot])]) suggestAlike(left[slot], read);
            for (const int read : m_a.operands[static_cast<size_t>(left[slot])]) suggestAlike(read, right[slot]);
        }
        suggestReaders(a, b);
    }
    void suggestAlike(int a, int b) {
        if (m_a.call[static_cast<size_t>(a)] == m_b.call[static_cast<size_t>(b)]) suggest(a, b);
    }
    void suggestReaders(int a, int b) {
        const auto &left = m_a.readers[static_cast<size_t>(a)], &right = m_b.readers[static_cast<size_t>(b)];
        // A constant may have thousands of readers: those of one operator are tried near their own turn.
        constexpr int kWindow = 4;
        constexpr size_t kFew = 6;
        std::unordered_map<MatchKey, std::vector<int>> byOp, turns;
        for (const MatchSide::Reader& reader : right)
            byOp[m_b.op[static_cast<size_t>(reader.node)]].push_back(reader.node);
        std::unordered_map<MatchKey, int> turn;
        for (const MatchSide::Reader& reader : left) {
            const MatchKey op = m_a.op[static_cast<size_t>(reader.node)];
            const int at = turn[op]++;
            if (const auto found = byOp.find(op); found != byOp.end()) {
                const int count = static_cast<int>(found->second.size());
                const int last = std::min(count, at + kWindow + 1);
                for (int i = std::max(0, std::min(at, count) - kWindow); i < last; ++i)
                    suggest(reader.node, found->second[static_cast<size_t>(i)]);
            }
            if (left.size() > kFew || right.size() > kFew) continue;
            for (const MatchSide::Reader& other : right) {
                suggest(reader.node, other.node);
                const auto& next = m_b.readers[static_cast<size_t>(other.node)];
                for (size_t i = 0; i < std::min(next.size(), kFew); ++i) suggestAlike(reader.node, next[i].node);
            }
            const auto& next = m_a.readers[static_cast<size_t>(reader.node)];
            for (const MatchSide::Reader& other : right)
                for (size_t i = 0; i < std::min(next.size(), kFew); ++i) suggestAlike(next[i].node, other.node);
        }
    }
    /// What speaks for a pair, less what speaks against it; 0 and less: nothing does, or it cannot be.
    double score(int a, int b) const {
        const size_t left = static_cast<size_t>(a), right = static_cast<size_t>(b);
        const Node &x = *m_a.nodes[left], &y = *m_b.nodes[right];
        if (x.kind() != y.kind() || x.isOutput()) return 0;
        const bool sameOp = m_a.op[left] == m_b.op[right];
        const double around = operandScore(left, right) + readerScore(left, right);
        // Another operator is the same call, edited, only where all around it says so.
        if (!sameOp) return m_disagrees == 0 && m_agrees >= 2 && m_open == 0 ? 0.5 + 0.01 * around : 0;
        double points = around + (m_a.label[left] == m_b.label[right] ? 4
                                  : m_a.call[left] == m_b.call[right] ? 2.5
                                                                      : 1.5);
        if (m_a.near[left] == m_b.near[right]) points += 1.5;
        if (m_a.from[left] == m_b.from[right]) points += 1;
        if (m_a.to[left] == m_b.to[right]) points += 1;
        if (x.provenance().backward != y.provenance().backward) points -= 1;
        const auto &here = x.provenance().modulePath, &there = y.provenance().modulePath;
        if (here && there) points += *here == *there ? 1 : -1;
        if (x.name() == y.name()) points += m_nameWeight;
        // Where as much speaks against it, it is another call of the same operator.
        return m_disagrees > m_agrees ? std::min(points, 0.0) : points;
    }
    double operandScore(size_t a, size_t b) const {
        const auto &left = m_a.operands[a], &right = m_b.operands[b];
        m_agrees = m_disagrees = m_open = 0;
        double points = 0;
        for (size_t slot = 0; slot < std::min(left.size(), right.size()); ++slot) {
            const size_t x = static_cast<size_t>(left[slot]), y = static_cast<size_t>(right[slot]);
            if (m_partner[x] == right[slot]) ++m_agrees;
            else if (m_partner[x] != kNone || m_other[y] != kNone) ++m_disagrees;
            else {
                ++m_open;
                points += m_a.label[x] == m_b.label[y] ? 0.3 : 0;
            }
        }
        m_disagrees += static_cast<int>(std::max(left.size(), right.size()) - std::min(left.size(), right.size()));
        return points + 3 * m_agrees - 2 * m_disagrees;
    }
    double readerScore(size_t a, size_t b) const {
        constexpr size_t kLookedAt = 32;
        const auto &left = m_a.readers[a], &right = m_b.readers[b];
        int agree = 0, disagree = 0;
        for (size_t i = 0; i < std::min(left.size(), kLookedAt); ++i) {
            const int partner = m_partner[static_cast<size_t>(left[i].node)];
            if (partner == kNone) continue;
            const bool same = m_b.reads(partner, left[i].slot, static_cast<int>(b));
            (same ? agree : disagree) += 1;
        }
        for (size_t i = 0; i < std::min(right.size(), kLookedAt); ++i) {
            const int partner = m_other[static_cast<size_t>(right[i].node)];
            disagree += partner != kNone && !m_a.reads(partner, right[i].slot, static_cast<int>(a));
        }
        m_agrees += agree;
        m_disagrees += disagree;
        return 2 * agree - disagree;
    }

    // One pair after the other.
    void grow() {
        while (!m_queue.empty() || !m_waiting.empty()) {
            if (m_queue.empty()) {
                const Candidate next = *m_waiting.rbegin();
                m_waiting.erase(std::prev(m_waiting.end()));
                if (isFree(next.a, next.b)) take(next.a, next.b, true);
                continue;
            }
            const Candidate next = m_queue.top();
            m_queue.pop();
            if (!isFree(next.a, next.b)) continue;
            const double now = score(next.a, next.b);
            if (now <= 0) continue;
            if (now < next.score) m_queue.push({now, next.a, next.b});
            else if (hasTwin(next.a, next.b, now)) m_waiting.insert({now, next.a, next.b});
            else take(next.a, next.b, false);
        }
    }
    /// Whether as much speaks for another partner of either.
    bool hasTwin(int a, int b, double points) const {
        constexpr double kSame = 0.25;
        const auto rivals = [&](const std::set<int>& others, int own, auto&& scoreOf) {
            return std::any_of(others.begin(), others.end(),
                               [&](int other) { return other != own && scoreOf(other) > points - kSame; });
        };
        return rivals(m_rivals.at(static_cast<size_t>(a)), b,
                      [&](int other) { return isFree(a, other) ? score(a, other) : 0; }) ||
               rivals(m_suitors.at(static_cast<size_t>(b)), a,
                      [&](int other) { return isFree(other, b) ? score(other, b) : 0; });
    }
    void take(int a, int b, bool byOrder) {
        pair(a, b);
        if (byOrder) m_contested[static_cast<size_t>(b)] = true;
        suggestAround(a, b);
    }
    /// What is left has nothing paired around it: calls of one label in one module, as many on both sides, in order.
    void pairByOrder() {
        std::unordered_map<MatchKey, std::pair<std::vector<int>, std::vector<int>>> left;
        const auto keyOf = [](const MatchSide& side, size_t node) {
            const auto& path = side.nodes[node]->provenance().modulePath;
            return side.label[node] + (path ? std::hash<std::string>()(*path) : 0);
        };
        for (size_t a = 0; a < m_a.size(); ++a)
            if (m_partner[a] == kNone) left[keyOf(m_a, a)].first.push_back(static_cast<int>(a));
        for (size_t b = 0; b < m_b.size(); ++b)
            if (m_other[b] == kNone) left[keyOf(m_b, b)].second.push_back(static_cast<int>(b));
        for (size_t a = 0; a < m_a.size(); ++a) {
            if (m_partner[a] != kNone) continue;
            const auto& [here, there] = left[keyOf(m_a, a)];
            if (here.size() != there.size()) continue;
            for (size_t i = 0; i < here.size(); ++i)
                if (isFree(here[i], there[i])) take(here[i], there[i], true);
            grow();
        }
    }

    GraphMatch result() const {
        GraphMatch out;
        for (size_t b = 0; b < m_b.size(); ++b) {
            if (m_other[b] == kNone) out.onlyAfter.push_back(m_b.nodes[b]->id());
            else
                out.pairs.push_back({m_a.nodes[static_cast<size_t>(m_other[b])]->id(), m_b.nodes[b]->id(),
                                     certaintyOf(static_cast<size_t>(m_other[b]), b)});
        }
        for (size_t a = 0; a < m_a.size(); ++a)
            if (m_partner[a] == kNone) out.onlyBefore.push_back(m_a.nodes[a]->id());
        return out;
    }
    Certainty certaintyOf(size_t a, size_t b) const {
        if (m_same[b] || m_a.nodes[a]->isOutput()) return Certainty::Sure;
        operandScore(a, b);
        readerScore(a, b);
        // In a row of equal layers what is near is the same for all.
        const bool once = m_a.from[a] == m_b.from[b] || m_a.to[a] == m_b.to[b] ||
                          (m_a.near[a] == m_b.near[b] && !m_a.alikeNear[a] && !m_b.alikeNear[b]);
        const bool alike = m_a.label[a] == m_b.label[b] && !m_a.twin[a] && !m_b.twin[b];
        const bool linked = !m_a.operands[a].empty() || !m_a.readers[a].empty();
        if (alike && once && linked && m_disagrees == 0 && m_open == 0 && !m_contested[b] && readersPaired(a, b))
            return Certainty::Sure;
        return m_agrees > m_disagrees || (m_agrees > 0 && m_agrees == m_disagrees && m_a.label[a] == m_b.label[b])
                   ? Certainty::Likely
                   : Certainty::Unsure;
    }
    bool readersPaired(size_t a, size_t b) const {
        const auto &left = m_a.readers[a], &right = m_b.readers[b];
        return left.size() == right.size() && std::all_of(left.begin(), left.end(), [&](const auto& reader) {
                   const int partner = m_partner[static_cast<size_t>(reader.node)];
                   return partner != kNone && m_b.reads(partner, reader.slot, static_cast<int>(b));
               });
    }

    MatchSide m_a, m_b;
    std::vector<int> m_partner, m_other;    // of m_a's nodes in m_b, and the other way round
    std::vector<bool> m_same, m_contested;  // by m_b's nodes
    double m_nameWeight = 0;
    std::priority_queue<Candidate> m_queue;
    std::set<Candidate> m_waiting;
    std::unordered_map<size_t, std::set<int>> m_rivals, m_suitors;  // all that were suggested
    mutable int m_agrees = 0, m_disagrees = 0, m_open = 0;          // what the last score counted
};

/// Strides that one side does not say are not a difference.
bool sameStrides(const ValueType& a, const ValueType& b) {
    if (const TensorType* x = a.tensor(), *y = b.tensor(); x && y)
        return x->assumed || y->assumed || !allInts(x->strides) || !allInts(y->strides) || x->strides == y->strides;
    if (const TupleType* x = a.tuple(), *y = b.tuple(); x && y)
        return std::equal(x->begin(), x->end(), y->begin(), y->end(), sameStrides);
    return true;
}

}  // namespace

bool sameForMatching(const Node& a, const Node& b) {
    return matchKeys(a).label == matchKeys(b).label && (a.isOutput() || sameStrides(a.type(), b.type()));
}

GraphMatch matchGraphs(const Graph& before, const Graph& after, uint32_t sameBelow) {
    return Matcher(before, after, sameBelow).match();
}

}  // namespace cutaway
