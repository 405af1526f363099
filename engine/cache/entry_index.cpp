#include "engine/cache/entry_index.h"

#include <chrono>
#include <cstdio>

namespace cutaway {
namespace {

int64_t now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string textOf(const IndexedEntry& entry) {
    std::string text;
    for (const int64_t number : {entry.bytes, entry.hits, entry.made, entry.used}) text += std::to_string(number) + " ";
    return text + entry.about;
}

/// None for text of another form, which stands for no entry.
std::optional<IndexedEntry> entryOf(const std::string& name, const std::string& text) {
    IndexedEntry entry{name, 0, 0, 0, 0, {}};
    int at = -1;
    long long bytes = 0, hits = 0, made = 0, used = 0;
    if (std::sscanf(text.c_str(), "%lld %lld %lld %lld %n", &bytes, &hits, &made, &used, &at) != 4 || at < 0)
        return std::nullopt;
    entry.bytes = bytes;
    entry.hits = hits;
    entry.made = made;
    entry.used = used;
    entry.about = text.substr(static_cast<size_t>(at));
    return entry;
}

}  // namespace

Result<void> EntryIndex::add(const std::string& name, int64_t bytes, const std::string& about) {
    return m_store->keep(m_kind, name, textOf({name, bytes, 0, now(), now(), about}));
}

Result<void> EntryIndex::hit(const std::string& name, int64_t bytes, const std::string& about) {
    return m_store->change(m_kind, name, [&](const std::optional<std::string>& before) {
        IndexedEntry entry{name, bytes, 0, now(), now(), about};
        if (const auto known = before ? entryOf(name, *before) : std::nullopt) entry = *known;
        entry.bytes = bytes;
        ++entry.hits;
        entry.used = now();
        return std::optional(textOf(entry));
    });
}

Result<void> EntryIndex::forget(const std::string& name) {
    return m_store->change(m_kind, name, [](const auto&) { return std::nullopt; });
}

Result<std::vector<IndexedEntry>> EntryIndex::all() const {
    CT_TRY(const auto rows, m_store->all(m_kind));
    std::vector<IndexedEntry> entries;
    for (const auto& [name, text] : rows)
        if (auto entry = entryOf(name, text)) entries.push_back(std::move(*entry));
    return entries;
}

}  // namespace cutaway
