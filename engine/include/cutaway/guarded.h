#pragma once
// Where exceptions end: what leaves a session, a pass, a job or a program becomes an Error in words.
#include "cutaway/result.h"

namespace cutaway {

/// The exception being handled, as an Error; for catch blocks only. Works without memory if there is none left.
Error currentError() noexcept;

/// The Result that `body` returns; an exception that it throws becomes the Result's Error.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
    try {
        return body();
    } catch (...) {
        return currentError();
    }
}

}  // namespace cutaway
