#include "engine/support/fault_points.h"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <variant>

#include "engine/support/check.h"

namespace cutaway {
namespace {

struct Fault {
    std::mutex mutex;
    std::string text;
    std::atomic<bool> asked{false};
    Fault() {
        if (const char* given = std::getenv("CUTAWAY_FAULT")) text = given;
        asked = !text.empty();
    }
};
Fault& fault() {
    static Fault one;
    return one;
}

[[noreturn]] void throwIt(std::string_view kind) {
    const std::string what = "asked for by CUTAWAY_FAULT";
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

void faultPoint(std::string_view place, std::string_view name) {
    Fault& asked = fault();
    if (!asked.asked.load(std::memory_order_relaxed)) return;
    std::string kind;
    {
        const std::lock_guard lock(asked.mutex);
        const std::string_view text = asked.text;
        const size_t last = text.rfind(':');
        if (last == std::string_view::npos) return;
        const std::string_view where = text.substr(0, last);
        const std::string here = std::string(place) + ":";
        if (where != here + std::string(name) && where != here + "*") return;
        kind = text.substr(last + 1);
    }
    throwIt(kind);
}

void setFault(const std::string& text) {
    Fault& asked = fault();
    const std::lock_guard lock(asked.mutex);
    asked.text = text;
    asked.asked = !text.empty();
}

}  // namespace cutaway
