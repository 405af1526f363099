#pragma once
// Where an expansion stands for its op's shape rule, or values decide the shape, arguments are asked for that nothing
// has accepted yet.
#include "cutaway/result.h"
#include "engine/support/check.h"

namespace cutaway {

/// Thrown where a call's argument is not what it is asked for. Typing and evaluating a call make an Error of it; in the
/// passes, which expand only what types have accepted, it is a bug.
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
