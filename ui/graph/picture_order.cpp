#include "ui/graph/picture_order.h"

#include <map>
#include <set>

namespace cutaway::ui {
namespace {

constexpr int kClusterDepth = 3;

}  // namespace

void sortBoxes(Picture& picture) {
    const size_t count = picture.nodes.size();
    std::vector<std::vector<int>> users(count);
    std::vector<int> waiting(count, 0);
    for (const auto& edge : picture.edges) {
        users[edge.from].push_back(edge.to);
        ++waiting[edge.to];
    }
    std::set<int> ready;
    for (size_t i = 0; i < count; ++i)
        if (waiting[i] == 0) ready.insert(static_cast<int>(i));
    std::vector<int> place(count, -1);
    std::vector<Picture::Node> sorted;
    while (sorted.size() < count) {
        // A cycle cannot come from a valid graph; a hand-made one must still be drawn.
        int next = ready.empty() ? 0 : *ready.begin();
        if (ready.empty())
            while (place[next] >= 0) ++next;
        ready.erase(next);
        place[next] = static_cast<int>(sorted.size());
        sorted.push_back(std::move(picture.nodes[next]));
        for (int user : users[next])
            if (--waiting[user] == 0 && place[user] < 0) ready.insert(user);
    }
    picture.nodes = std::move(sorted);
    for (auto& edge : picture.edges) {
        edge.from = place[edge.from];
        edge.to = place[edge.to];
    }
    for (int& box : picture.where) box = place[box];
}

void addClusters(Picture& picture, bool all) {
    std::map<QString, int> count;
    const auto prefixes = [deepest = all ? ModuleFolding::kAll : kClusterDepth](const QString& module) {
        QStringList found;
        for (int depth = 0; depth < deepest && depth < module.count('.') + 1; ++depth)
            found << module.section('.', 0, depth);
        return found;
    };
    for (const auto& node : picture.nodes)
        if (!node.module.isEmpty())
            for (const QString& prefix : prefixes(node.module)) ++count[prefix];
    std::map<QString, int> made;
    for (auto& node : picture.nodes) {
        if (node.module.isEmpty()) continue;
        int parent = -1, above = static_cast<int>(picture.nodes.size());
        for (const QString& prefix : prefixes(node.module)) {
            // A cluster that holds what its parent holds says nothing new.
            if (count[prefix] < 2 || count[prefix] == above) continue;
            above = count[prefix];
            const QString key = moduleKey(prefix, node.backward);
            const auto [at, fresh] = made.try_emplace(key, static_cast<int>(picture.clusters.size()));
            if (fresh) picture.clusters.push_back({key, parent});
            parent = at->second;
        }
        node.cluster = parent;
    }
}

}  // namespace cutaway::ui
