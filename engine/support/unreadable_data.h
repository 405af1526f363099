#pragma once
// Bytes of a file that can no longer be had.
#include <stdexcept>
#include <utility>

#include "cutaway/result.h"

namespace cutaway {

/// Thrown where the bytes of a file are wanted that can no longer be had: it was cut short, or written to, after it was
/// opened. The session's border makes it the Error that it holds.
class UnreadableData : public std::runtime_error {
  public:
    explicit UnreadableData(Error error) : std::runtime_error(error.text()), m_error(std::move(error)) {}
    const Error& error() const { return m_error; }

  private:
    Error m_error;
};

}  // namespace cutaway
