#include "cutaway/releases.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace cutaway {
namespace {

constexpr std::string_view kNames[] = {"2.11", "2.12", "2.13", "2.14", "2.15"};
static_assert(std::size(kNames) == std::size(kReleaseList));

/// Both parts of "2.15"; what stands behind a further dot, or a letter, says nothing.
std::optional<std::pair<int, int>> partsOf(std::string_view version) {
    int major = 0, minor = 0;
    const char* const end = version.data() + version.size();
    const auto first = std::from_chars(version.data(), end, major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, minor);
    if (second.ec != std::errc() || major < 0 || minor < 0) return std::nullopt;
    return std::pair(major, minor);
}

}  // namespace

std::string_view releaseName(Release release) { return kNames[static_cast<size_t>(release)]; }

std::optional<Release> releaseOf(std::string_view name) {
    const auto found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames)) return std::nullopt;
    return kReleaseList[found - std::begin(kNames)];
}

std::optional<Release> nearestRelease(std::string_view version) {
    const auto wanted = partsOf(version);
    if (!wanted) return std::nullopt;
    Release nearest = kOldestRelease;
    for (const Release release : kReleaseList)
        if (*partsOf(releaseName(release)) <= *wanted) nearest = release;
    return nearest;
}

}  // namespace cutaway
