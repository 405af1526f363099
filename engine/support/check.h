#pragma once
// CT_CHECK: conditions that only a bug in Cutaway can break. On in every build.
#include <stdexcept>
#include <string>

namespace cutaway {

/// Caught in runPass and at the Session border, where it becomes an Error. Beside it there is only SizeError.
class InternalError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

/// Sizes, strides, offsets or bytes that a file or argument made too large: they do not fit into 64 bits, or lead
/// outside of a tensor's memory. An exception because arithmetic on sizes is written with operators, which cannot
/// return a Result; withCheckedSizes (support/checked.h) makes an Error of it wherever a call is typed, run, lowered or
/// given its sizes.
class SizeError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] void failCheck(const char* condition, const char* why, const char* file, int line);

#define CT_CHECK(condition, why) \
    ((condition) ? static_cast<void>(0) : ::cutaway::failCheck(#condition, why, __FILE__, __LINE__))

}  // namespace cutaway
