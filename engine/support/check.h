#pragma once
// CT_CHECK: conditions that only a bug in Cutaway can break. On in every build.
#include <stdexcept>
#include <string>

namespace cutaway {

/// The only exception of ours. Caught in runPass and at the Session border, where it becomes an Error.
class InternalError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

[[noreturn]] void failCheck(const char* condition, const char* why, const char* file, int line);

#define CT_CHECK(condition, why) \
    ((condition) ? static_cast<void>(0) : ::cutaway::failCheck(#condition, why, __FILE__, __LINE__))

}  // namespace cutaway
