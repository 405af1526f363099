#include "engine/support/fault_points.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "engine/support/check.h"
#include "engine/support/sanitized.h"

namespace cutaway {
namespace {

struct Faults {
    std::mutex mutex;
    std::string text;
    std::atomic<bool> asked{false};
    Faults() {
        if (const char* given = std::getenv("CUTAWAY_FAULT")) text = given;
        asked = !text.empty();
    }
};
Faults& faults() {
    static Faults one;
    return one;
}
thread_local FaultSide t_side = FaultSide::None;

/// "PLACE@SIDE:NAME:KIND"
struct Fault {
    std::string_view place, side, name, kind;
};
std::vector<Fault> parse(std::string_view text) {
    std::vector<Fault> all;
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(';'));
        text.remove_prefix(std::min(text.size(), one.size() + 1));
        const size_t first = one.find(':'), last = one.rfind(':');
        if (first == std::string_view::npos || first == last) continue;
        Fault fault{one.substr(0, first), {}, one.substr(first + 1, last - first - 1), one.substr(last + 1)};
        if (const size_t at = fault.place.find('@'); at != std::string_view::npos) {
            fault.side = fault.place.substr(at + 1);
            fault.place = fault.place.substr(0, at);
        }
        all.push_back(fault);
    }
    return all;
}

bool isOnSide(std::string_view side) {
    return side.empty() || (side == "before" && t_side == FaultSide::Before) ||
           (side == "after" && t_side == FaultSide::After);
}
bool isNamed(std::string_view asked, std::string_view name, std::string_view owner) {
    if (asked == "*" || asked == name) return true;
    return !owner.empty() && asked.size() == owner.size() + 1 + name.size() && asked.starts_with(owner) &&
           asked[owner.size()] == '/' && asked.ends_with(name);
}
/// The kinds asked for at a place, in their order.
std::vector<std::string> kindsAt(std::string_view place, std::string_view name, std::string_view owner) {
    Faults& all = faults();
    const std::lock_guard lock(all.mutex);
    std::vector<std::string> kinds;
    for (const Fault& fault : parse(all.text))
        if (fault.place == place && isOnSide(fault.side) && isNamed(fault.name, name, owner))
            kinds.emplace_back(fault.kind);
    return kinds;
}

FaultEffect effectOf(std::string_view kind) {
    return kind == "wrong"     ? FaultEffect::Wrong
           : kind == "nan"     ? FaultEffect::Nan
           : kind == "invalid" ? FaultEffect::Invalid
           : kind == "outside" ? FaultEffect::Outside
           : kind == "refuse"  ? FaultEffect::Refuse
                               : FaultEffect::None;
}

[[noreturn]] void dieOf(int signal) {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    ::_exit(128 + signal);
}
[[noreturn]] void hang() {
    for (;;) ::pause();
}
/// Ends with std::bad_alloc, or by whoever watches over the machine's memory.
[[noreturn]] void leak() {
    if (kSanitized) throw std::bad_alloc();  // no limit would end it
    constexpr size_t kPiece = size_t{16} << 20;
    for (;;) {
        char* piece = new char[kPiece];
        std::memset(piece, 1, kPiece);
        static std::atomic<char*> last;
        last = piece;
    }
}
/// Children that hang. An alarm ends them after ten minutes, so that a test which fails leaves nothing behind for good.
void startChildren() {
    constexpr unsigned kSeconds = 600;
    for (int i = 0; i < 3; ++i) {
        if (::fork() != 0) continue;
        ::setsid();
        ::signal(SIGALRM, SIG_DFL);
        ::alarm(kSeconds);
        hang();
    }
}

void act(std::string_view kind) {
    const std::string what = "asked for by CUTAWAY_FAULT";
    if (kind == "crash") dieOf(SIGSEGV);
    if (kind == "abort") dieOf(SIGABRT);
    if (kind == "sigterm") ::signal(SIGTERM, SIG_IGN);
    if (kind == "hang" || kind == "sigterm") hang();
    if (kind == "leak") leak();
    if (kind == "fork") return startChildren();
    if (kind == "logic_error") throw std::logic_error(what);
    if (kind == "out_of_range") throw std::out_of_range(what);
    if (kind == "length_error") throw std::length_error(what);
    if (kind == "bad_alloc") throw std::bad_alloc();
    if (kind == "runtime_error") throw std::runtime_error(what);
    if (kind == "system_error") throw std::system_error(std::make_error_code(std::errc::io_error), what);
    if (kind == "bad_function_call") throw std::bad_function_call();
    if (kind == "bad_variant_access") throw std::bad_variant_access();
    if (kind == "int") throw 7;
    throw InternalError(what);
}

}  // namespace

bool faultsAsked() { return faults().asked.load(std::memory_order_relaxed); }

void faultPoint(std::string_view place, std::string_view name, std::string_view owner) {
    if (!faultsAsked()) return;
    for (const std::string& kind : kindsAt(place, name, owner))
        if (effectOf(kind) == FaultEffect::None) act(kind);
}

FaultEffect faultEffect(std::string_view place, std::string_view name, std::string_view owner) {
    if (!faultsAsked()) return FaultEffect::None;
    for (const std::string& kind : kindsAt(place, name, owner))
        if (const FaultEffect effect = effectOf(kind); effect != FaultEffect::None) return effect;
    return FaultEffect::None;
}

bool faultsAskedAt(std::string_view place) {
    if (!faultsAsked()) return false;
    Faults& all = faults();
    const std::lock_guard lock(all.mutex);
    const std::vector<Fault> asked = parse(all.text);
    return std::any_of(asked.begin(), asked.end(), [&](const Fault& fault) { return fault.place == place; });
}

void setFault(const std::string& asked) {
    Faults& all = faults();
    const std::lock_guard lock(all.mutex);
    all.text = asked;
    all.asked = !asked.empty();
}

std::string askedFaults() {
    if (!faultsAsked()) return {};
    Faults& all = faults();
    const std::lock_guard lock(all.mutex);
    return all.text;
}

FaultSideScope::FaultSideScope(FaultSide side) : m_before(std::exchange(t_side, side)) {}
FaultSideScope::~FaultSideScope() { t_side = m_before; }

}  // namespace cutaway
