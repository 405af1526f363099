#pragma once
// Arguments that nothing has checked yet: an expansion that serves as its op's shape rule reads them, and a kernel
// whose result's shape depends on values.
#include "cutaway/result.h"
#include "engine/support/check.h"

namespace cutaway {

/// Thrown when an argument is not of the kind that is read. Typing and evaluating a call turn it into an Error; in
/// passes, which expand only calls whose types were accepted, it is a bug.
class RefusedArgument : public InternalError {
  public:
    explicit RefusedArgument(Error error)
        : InternalError("the op's shape rule has accepted these arguments: " + error.message),
          m_error(std::move(error)) {}
    const Error& error() const { return m_error; }

  private:
    Error m_error;
};

}  // namespace cutaway
