#pragma once
// Where an expansion stands for its op's shape rule, it asks for arguments that nothing has accepted yet.
#include "cutaway/result.h"
#include "engine/support/check.h"

namespace cutaway {

/// Thrown where a Decomposition is asked for an argument that is not what it is asked for. expandCall makes an Error of
/// it; in the passes, which expand only what types have accepted, it is a bug.
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
