#pragma once
// A limit on the rewrites of one pass, required or not, over all its steps of a run; the run ends when it is reached.
// Bisecting uses it to look into required passes, which fuel does not stop because later passes rely on them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cutaway {

/// What CUTAWAY_PASS_FUEL=PASS:N, or the innermost scope of this thread, asks for.
struct PassFuel {
    std::string pass;
    int64_t rewrites = 0;
};
std::optional<PassFuel> askedPassFuel();

class PassFuelScope {
  public:
    explicit PassFuelScope(PassFuel fuel);
    ~PassFuelScope();
    PassFuelScope(const PassFuelScope&) = delete;
    PassFuelScope& operator=(const PassFuelScope&) = delete;

  private:
    PassFuel m_fuel;
    const PassFuel* m_before;
};

}  // namespace cutaway
