#include "engine/passes/pass_fuel.h"

#include <charconv>
#include <cstdlib>

namespace cutaway {
namespace {

thread_local const PassFuel* t_fuel = nullptr;

std::optional<PassFuel> ofEnvironment() {
    const char* given = std::getenv("CUTAWAY_PASS_FUEL");
    const std::string_view text = given ? given : "";
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    PassFuel fuel{std::string(text.substr(0, colon)), 0};
    const auto read = std::from_chars(text.data() + colon + 1, text.data() + text.size(), fuel.rewrites);
    return read.ec == std::errc() ? std::optional(std::move(fuel)) : std::nullopt;
}

}  // namespace

std::optional<PassFuel> askedPassFuel() {
    static const std::optional<PassFuel> always = ofEnvironment();
    return t_fuel ? std::optional(*t_fuel) : always;
}

PassFuelScope::PassFuelScope(PassFuel fuel) : m_fuel(std::move(fuel)), m_before(t_fuel) { t_fuel = &m_fuel; }
PassFuelScope::~PassFuelScope() { t_fuel = m_before; }

}  // namespace cutaway
