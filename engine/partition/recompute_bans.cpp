#include "engine/partition/recompute_bans.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace cutaway {
namespace {

constexpr int kLongestChain = 100;  // of fusible calls, in the order of the forward
constexpr int kFarthest = 1000;     // distances above this count as not needed (B.8, rule 6)

std::string_view libraryOf(const Node& node) {
    const std::string_view name = node.op().name();
    return name.substr(0, name.find('.'));
}
bool isCustom(const Node& node) {
    const std::string_view library = libraryOf(node);
    return library != "aten" && library != "prims" && library != "operator" && library != "higher_order" &&
           library != "math" && library != "torch";
}

class Banning {
  public:
    Banning(const JointFacts& facts, const PartitionOptions& options, const BanOptions& bans, bool parity,
            const std::vector<bool>& allowed)
        : m_facts(facts),
          m_options(options),
          m_bans(bans),
          m_parity(parity),
          m_allowed(allowed),
          m_out{FlowNetwork(facts), {}} {}

    BannedNetwork run() {
        for (int i = 0; i + 1 < static_cast<int>(m_facts.nodes.size()); ++i) addNode(i);
        if (m_bans.usedFarApart) banUsedFarApart();
        if (m_bans.longFusibleChains) banLongChains();
        return std::move(m_out);
    }

  private:
    using ByOrder = std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>>;

    void addNode(int i) {
        const JointNode& node = m_facts[i];
        FlowNetwork::NodeEdges& edges = m_out.network[i];
        if (node.requiredBackward && node.tangentsClosure) {
            edges.sinkIn = EdgeReason::NeedsTangent;
            edges.ends = true;
            return;
        }
        if (node.requiredBackward) edges.sinkOut = EdgeReason::ReturnedGradient;
        if (node.tagged()) {
            edges.sinkIn = EdgeReason::UserRecomputes;
            edges.ends = true;
            return;
        }
        if (node.forwardInput) ban(i, EdgeReason::Input);
        if (node.requiredForward())
            if (const EdgeReason reason = mustNotRepeat(node); reason != EdgeReason::None) ban(i, reason);
        weigh(node, edges);
    }

    /// Whether the node is banned now; views, and what a budget or the user wants computed again, are not.
    bool ban(int i, EdgeReason reason) {
        const JointNode& node = m_facts[i];
        if (node.view || node.tagged()) return false;
        const bool kept = node.collective || (node.drawsAnew && !m_parity);
        if (!m_allowed.empty() && m_allowed[static_cast<size_t>(i)] && !kept) return false;
        if (node.symbolic && isFloating(node.node->type().sym()->dtype)) return false;
        EdgeReason& source = m_out.network[i].source;
        if (source != EdgeReason::None) return true;
        source = reason;
        m_out.banned.push_back(i);
        return true;
    }

    EdgeReason mustNotRepeat(const JointNode& node) const {
        const Node& call = *node.node;
        if (!call.isCall() || call.isCall("operator.getitem")) return EdgeReason::None;
        if (node.recompute < 0) return EdgeReason::UserSaves;
        if (m_options.recomputeViews && node.view) return EdgeReason::None;
        if (call.isCall("aten.lift_fresh_copy.default") || call.isCall("aten.lift_fresh.default"))
            return EdgeReason::None;
        if (m_bans.notInAllowlist) {
            if (!node.recomputable) return EdgeReason::NotRecomputable;
        } else {
            if (node.random || (!m_parity && node.drawsAnew)) return EdgeReason::DrawsAnew;
            if (node.heavy) return EdgeReason::ComputeIntensive;
            if (m_options.includeCustomOps && isCustom(call)) return EdgeReason::Custom;
        }
        if (m_bans.materializedBackward && isMaterializedBackward(node)) return EdgeReason::MaterializedBackward;
        if (node.distance < kFarthest && node.distance > m_options.maxDistance) return EdgeReason::FarFromBackward;
        if (m_bans.reductions && reduces(node)) return EdgeReason::Reduces;
        return EdgeReason::None;
    }

    /// Whether a reader that is not of the forward, itself or through views, cannot be fused with it.
    bool isMaterializedBackward(const JointNode& node) const {
        if (node.view) return false;
        std::vector<int> open = {m_facts.at(*node.node)};
        std::vector<int> seen = open;
        while (!open.empty()) {
            const int at = open.back();
            open.pop_back();
            for (const int user : m_facts[at].users) {
                if (!m_facts[user].requiredForward() && !m_facts.fusible(at, user)) return true;
                if (!m_facts[user].view || std::find(seen.begin(), seen.end(), user) != seen.end()) continue;
                seen.push_back(user);
                open.push_back(user);
            }
        }
        return false;
    }

    bool reduces(const JointNode& node) const {
        double operands = 0;
        for (const Argument& arg : node.node->args())
            if (const Node* operand = arg.node()) operands += static_cast<double>(m_facts[m_facts.at(*operand)].bytes);
        return static_cast<double>(node.bytes) * 4 < operands;
    }

    void weigh(const JointNode& node, FlowNetwork::NodeEdges& edges) const {
        if (node.symbolic) {
            edges.weight = isFloating(node.node->type().sym()->dtype) ? 4 : 1;
        } else if (node.multipleResults) {
            edges.weight = FlowNetwork::kInfinite;
            edges.unsaved = EdgeReason::NotATensor;
        } else if (m_options.parametersAreFree && node.stays) {
            edges.weight = 0;
        } else if (m_options.recomputeViews && node.view) {
            edges.weight = FlowNetwork::kInfinite;
            edges.unsaved = EdgeReason::ViewsAreComputed;
        } else {
            // A little dearer for each step away from the backward; twice as dear if it need not be in memory at all.
            const double near = std::pow(1.1, std::max(std::min(node.distance, 100), 1));
            const double bytes = std::min(std::trunc(static_cast<double>(node.bytes) * near), 0x1p56);
            edges.weight = static_cast<int64_t>(bytes) * (node.fusesWithAllUsers ? 2 : 1);
        }
    }

    std::vector<int> forwardUsers(int i) const {
        std::vector<int> users;
        for (const int user : m_facts[i].users)
            if (m_facts[user].requiredForward()) users.push_back(user);
        return users;
    }

    /// A value whose recomputed readers are far apart would stay in memory between them. So those of its readers that
    /// come after the first call that cannot be fused are banned from recomputation.
    void banUsedFarApart() {
        std::vector<bool> banned(m_facts.nodes.size());
        for (const int one : m_out.banned) banned[static_cast<size_t>(one)] = true;
        for (int i = 0; i + 1 < static_cast<int>(m_facts.nodes.size()); ++i) {
            if (!m_facts[i].requiredForward()) continue;
            std::vector<int> users = forwardUsers(i);
            if (users.empty()) continue;
            std::sort(users.begin(), users.end(),
                      [&](int a, int b) { return m_facts[a].forwardOrder < m_facts[b].forwardOrder; });
            const int first = firstUnfusible(users, m_facts[users.back()].forwardOrder);
            for (const int user : users)
                if (m_facts[user].forwardOrder > first && m_facts.fusible(i, user) &&
                    !banned[static_cast<size_t>(user)] && ban(user, EdgeReason::UsedFarApart))
                    banned[static_cast<size_t>(user)] = true;
        }
    }
    /// The place in the forward of the first call that cannot be fused, on the way from `start` up to `last`.
    int firstUnfusible(const std::vector<int>& start, int last) {
        ByOrder open;
        m_seen.resize(2 * m_facts.nodes.size());
        ++m_walk;
        const auto push = [&](int node, bool fusible) {
            const int code = fusible ? 2 * node + 1 : 2 * node;
            if (std::exchange(m_seen[static_cast<size_t>(code)], m_walk) != m_walk)
                open.emplace(m_facts[node].forwardOrder, code);
        };
        for (const int one : start) push(one, true);
        while (!open.empty()) {
            const auto [order, code] = open.top();
            open.pop();
            if (code % 2 == 0) return order;
            for (const int user : m_facts[code / 2].users)
                if (m_facts[user].requiredForward() && m_facts[user].forwardOrder <= last)
                    push(user, m_facts.fusible(code / 2, user));
        }
        return last;
    }

    /// Bans the end of a chain of more than a hundred fusible calls with nothing beside it.
    void banLongChains() {
        std::vector<bool> visited(m_facts.nodes.size());
        for (int start = 0; start + 1 < static_cast<int>(m_facts.nodes.size()); ++start) {
            if (!m_facts[start].requiredForward()) continue;
            ByOrder open;
            open.emplace(m_facts[start].forwardOrder, start);
            while (!open.empty()) {
                const int at = open.top().second;
                open.pop();
                if (visited[static_cast<size_t>(at)]) continue;
                visited[static_cast<size_t>(at)] = true;
                if (m_facts[at].forwardOrder > m_facts[start].forwardOrder + kLongestChain && open.empty()) {
                    ban(at, EdgeReason::LongChain);
                    break;
                }
                for (const int user : m_facts[at].users)
                    if (m_facts[user].requiredForward() && m_facts.fusible(at, user) &&
                        m_out.network[user].source == EdgeReason::None)
                        open.emplace(m_facts[user].forwardOrder, user);
            }
        }
    }

    const JointFacts& m_facts;
    const PartitionOptions& m_options;
    const BanOptions& m_bans;
    const bool m_parity;
    const std::vector<bool>& m_allowed;
    BannedNetwork m_out;
    std::vector<int> m_seen;  // by node, and whether the edge to it was fusible: in which walk it was seen last
    int m_walk = 0;
};

}  // namespace

BannedNetwork banRecomputation(const JointFacts& facts, const PartitionOptions& options, const BanOptions& bans,
                               bool parity, const std::vector<bool>& allowed) {
    return Banning(facts, options, bans, parity, allowed).run();
}

}  // namespace cutaway
