// What can be asked of a picture.
#include <algorithm>

#include "ui/graph/graph_picture.h"

namespace cutaway::ui {

int Picture::indexOfModule(const QString& key) const {
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.key == key; });
    return found == nodes.end() || key.isEmpty() ? -1 : static_cast<int>(found - nodes.begin());
}

QString Picture::opOf(int box) const {
    if (box < 0 || nodes[static_cast<size_t>(box)].isFold()) return {};
    const std::vector<int>& own = nodes[static_cast<size_t>(box)].ops;
    return own.empty() ? QString() : ops[static_cast<size_t>(own.front())];
}

QString Picture::moduleToClose(int box) const {
    if (box < 0 || modules == 0) return {};
    const Node& at = nodes[static_cast<size_t>(box)];
    for (QString key = at.module.isEmpty() ? QString() : moduleKey(at.module, at.backward); !key.isEmpty();
         key = moduleAround(key)) {
        const QString path = pathOfModule(key);
        const auto isInside = [&](const Node& node) {
            return node.backward == at.backward &&
                   (node.module == path || (node.module.startsWith(path) && node.module[path.size()] == QChar('.')));
        };
        if (std::count_if(nodes.begin(), nodes.end(), isInside) > 1) return key;
    }
    return {};
}

NodeKey Picture::changedChip(int box) const {
    for (const Chip& chip : nodes[static_cast<size_t>(box)].chips)
        if (chip.change != Change::Unchanged) return chip.id;
    return NodeKey::None;
}

}  // namespace cutaway::ui
