#include "ui/graph/module_folding.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace cutaway::ui {
namespace {

constexpr int kDeepest = 12;  // levels that are tried; deeper modules stay closed in a map

constexpr int kOwnCalls = 8;  // of a module with others in it, from which on they are a part of their own

QString ownWord() { return QStringLiteral("own calls"); }
bool isOwn(const QString& key) { return pathOfModule(key).section(QChar('.'), -1) == ownWord(); }

QString backwardWord() { return QStringLiteral(" (backward)"); }

QStringList sorted(const QSet<QString>& keys) {
    QStringList list(keys.begin(), keys.end());
    list.sort();
    return list;
}

}  // namespace

QString moduleKey(const QString& path, bool backward) { return backward ? path + backwardWord() : path; }

bool isBackward(const QString& key) { return key.endsWith(backwardWord()); }

QString pathOfModule(const QString& key) { return isBackward(key) ? key.chopped(backwardWord().size()) : key; }

QString ownCallsOf(const QString& path) { return path + QChar('.') + ownWord(); }

QString moduleAround(const QString& key) {
    const QString path = pathOfModule(key);
    const auto dot = path.lastIndexOf(QChar('.'));
    return dot < 0 ? QString() : moduleKey(path.left(dot), isBackward(key));
}

void ModuleFolding::open(const QString& key) {
    opened.insert(key);
    for (QString at = key; !at.isEmpty(); at = moduleAround(at)) closed.remove(at);
}

void ModuleFolding::close(const QString& key) {
    closed.insert(key);
    opened.removeIf([&](QString inside) {
        while (!inside.isEmpty() && inside != key) inside = moduleAround(inside);
        return !inside.isEmpty();
    });
}

QString ModuleFolding::text() const {
    QStringList parts;
    if (level) parts << QStringLiteral("level=%1").arg(*level);
    for (const QString& key : sorted(opened)) parts << QStringLiteral("open=") + key;
    for (const QString& key : sorted(closed)) parts << QStringLiteral("closed=") + key;
    return parts.join(QChar(';'));
}

ModuleFolding ModuleFolding::fromText(const QString& text) {
    ModuleFolding folding;
    for (const QString& part : text.split(QChar(';'), Qt::SkipEmptyParts)) {
        const QString name = part.section(QChar('='), 0, 0), value = part.section(QChar('='), 1);
        bool isNumber = false;
        const int level = value.toInt(&isNumber);
        if (name == QLatin1String("level") && isNumber && level >= 0) folding.level = std::min(level, kAll);
        if (name == QLatin1String("open") && !value.isEmpty()) folding.opened.insert(value);
        if (name == QLatin1String("closed") && !value.isEmpty()) folding.closed.insert(value);
    }
    return folding;
}

ModuleBoxes::ModuleBoxes(const UnionGraph& graph) : m_graph(graph), m_moduleOf(graph.nodes.size(), -1) {
    std::map<std::pair<std::string_view, bool>, int> known;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const NodeInfo& info = graph.nodes[i].info;
        if (info.module.empty() || info.role == NodeRole::Output) continue;
        const auto [at, fresh] = known.try_emplace({info.module, info.backward}, static_cast<int>(m_keys.size()));
        m_moduleOf[i] = at->second;
        if (!fresh) continue;
        const QString path = QString::fromStdString(info.module);
        QStringList keys;
        for (auto dot = path.indexOf(QChar('.')); dot >= 0; dot = path.indexOf(QChar('.'), dot + 1))
            keys << moduleKey(path.left(dot), info.backward);
        m_keys.push_back(keys << moduleKey(path, info.backward));
    }
    std::vector<int> calls(m_keys.size(), 0);
    for (size_t i = 0; i < m_moduleOf.size(); ++i)
        if (m_moduleOf[i] >= 0 && graph.nodes[i].info.role == NodeRole::Call)
            ++calls[static_cast<size_t>(m_moduleOf[i])];
    for (const QStringList& keys : m_keys)
        for (qsizetype i = 0; i + 1 < keys.size(); ++i) m_holdsModules.insert(keys[i]);
    for (size_t module = 0; module < m_keys.size(); ++module)
        if (const QString key = m_keys[module].last(); calls[module] >= kOwnCalls && m_holdsModules.contains(key))
            m_keys[module] << moduleKey(ownCallsOf(pathOfModule(key)), isBackward(key));
}

int ModuleBoxes::levelFor(const std::vector<bool>& counts, size_t most) const {
    int best = 0;
    for (int level = 0; level < kDeepest; ++level) {
        QSet<QString> closed;
        size_t boxes = 0;
        std::set<int> modules;
        for (size_t i = 0; i < counts.size(); ++i) {
            if (!counts[i]) continue;
            const int module = m_moduleOf[i];
            const QStringList keys = module < 0 ? QStringList() : m_keys[static_cast<size_t>(module)];
            if (module < 0 || (keys.size() <= level && m_holdsModules.contains(keys.last()))) ++boxes;
            else modules.insert(module);
        }
        for (const int module : modules) {
            const QStringList& keys = m_keys[static_cast<size_t>(module)];
            closed.insert(keys[std::min<qsizetype>(level, keys.size() - 1)]);
        }
        if (boxes + static_cast<size_t>(closed.size()) > most) break;
        best = level;
    }
    return best;
}

int ModuleBoxes::depth() const {
    qsizetype deepest = 0;
    for (const QStringList& keys : m_keys) deepest = std::max(deepest, keys.size() - (isOwn(keys.last()) ? 1 : 0));
    return static_cast<int>(deepest);
}

std::vector<QString> ModuleBoxes::closedAt(int level, const ModuleFolding& folding, NodeKey shown) const {
    QSet<QString> needed;
    for (size_t i = 0; i < m_moduleOf.size() && shown != NodeKey::None; ++i)
        if (m_graph.nodes[i].info.id == shown && m_moduleOf[i] >= 0)
            for (const QString& key : m_keys[static_cast<size_t>(m_moduleOf[i])]) needed.insert(key);
    // Whoever opens a module wants to see it, whatever is closed around it.
    for (QString key : folding.opened)
        for (key = moduleAround(key); !key.isEmpty(); key = moduleAround(key)) needed.insert(key);
    std::vector<QString> byModule(m_keys.size());
    for (size_t module = 0; module < m_keys.size(); ++module)
        for (int depth = 0; depth < m_keys[module].size(); ++depth) {
            const QString& key = m_keys[module][depth];
            // A map shows no calls of a module's own; of a module that somebody opened they are what is looked for.
            const bool own = level < ModuleFolding::kAll && isOwn(key) && !folding.opened.contains(moduleAround(key));
            const bool leaf = level < ModuleFolding::kAll && !m_holdsModules.contains(key);
            const bool byLevel = (isOwn(key) ? own : leaf || depth >= level) && !folding.opened.contains(key);
            if ((!byLevel && !folding.closed.contains(key)) || needed.contains(key)) continue;
            byModule[module] = key;
            break;
        }
    std::vector<QString> out(m_moduleOf.size());
    for (size_t i = 0; i < out.size(); ++i)
        if (m_moduleOf[i] >= 0) out[i] = byModule[static_cast<size_t>(m_moduleOf[i])];
    return out;
}

std::vector<bool> ModuleBoxes::openedByHand(const ModuleFolding& folding) const {
    std::vector<bool> byModule(m_keys.size(), false), out(m_moduleOf.size(), false);
    for (size_t module = 0; module < m_keys.size(); ++module)
        byModule[module] = std::any_of(m_keys[module].begin(), m_keys[module].end(),
                                       [&](const QString& key) { return folding.opened.contains(key); });
    for (size_t i = 0; i < out.size(); ++i)
        if (m_moduleOf[i] >= 0) out[i] = byModule[static_cast<size_t>(m_moduleOf[i])];
    return out;
}

}  // namespace cutaway::ui
