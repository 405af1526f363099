#include "engine/support/near_names.h"

#include <algorithm>

namespace cutaway {
namespace {

size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t exchanged = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({exchanged, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::vector<std::string_view> nearNames(std::string_view given, std::span<const std::string_view> names) {
    constexpr size_t kMost = 3;
    const size_t limit = std::max<size_t>(given.size() / 3, 1);
    std::vector<std::pair<size_t, std::string_view>> near;
    for (const std::string_view name : names) {
        const size_t lengths = name.size() > given.size() ? name.size() - given.size() : given.size() - name.size();
        if (lengths > limit ||
            std::any_of(near.begin(), near.end(), [&](const auto& each) { return each.second == name; }))
            continue;
        if (const size_t far = distance(given, name); far <= limit) near.emplace_back(far, name);
    }
    std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string_view> out;
    for (const auto& [far, name] : near)
        if (out.size() < kMost) out.push_back(name);
    return out;
}

std::string suggestion(std::string_view given, std::span<const std::string_view> names) {
    const auto near = nearNames(given, names);
    std::string out;
    for (size_t i = 0; i < near.size(); ++i)
        out += (i == 0 ? "did you mean " : i + 1 < near.size() ? ", " : " or ") + std::string(near[i]);
    return out.empty() ? out : out + "?";
}

}  // namespace cutaway
