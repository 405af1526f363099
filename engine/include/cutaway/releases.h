#pragma once
// Releases of PyTorch. What differs between them says so on its own row: a decomposition, a rule, a pass, a setting.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cutaway {

/// The releases whose compiler can be asked for, oldest first.
enum class Release : uint8_t { V2_11, V2_12, V2_13, V2_14, V2_15 };
constexpr Release kReleaseList[] = {Release::V2_11, Release::V2_12, Release::V2_13, Release::V2_14, Release::V2_15};
constexpr Release kOldestRelease = Release::V2_11, kNewestRelease = Release::V2_15;
/// Of a request that names none.
constexpr Release kDefaultRelease = kNewestRelease;
/// "2.15".
std::string_view releaseName(Release release);
/// Of a name, "2.15". Nullopt for any other.
std::optional<Release> releaseOf(std::string_view name);
/// The release whose compiler is nearest to that of a version as PyTorch writes it ("2.15.0a0+git1234"): an older one
/// counts as the oldest, a newer one as the newest. Nullopt if it is not a version.
std::optional<Release> nearestRelease(std::string_view version);

/// The releases that have something: from `since` on, and before `until`.
struct Releases {
    Release since = kOldestRelease;
    std::optional<Release> until = std::nullopt;

    constexpr bool hold(Release release) const { return release >= since && (!until || release < *until); }
    constexpr bool isAll() const { return since == kOldestRelease && !until; }
    bool operator==(const Releases&) const = default;
};
constexpr Releases sinceRelease(Release since) { return {since, std::nullopt}; }
constexpr Releases untilRelease(Release until) { return {kOldestRelease, until}; }

}  // namespace cutaway
