#pragma once
// Where exceptions end: at the border of a session, a pass, a job and a program each becomes an Error in words.
#include "cutaway/result.h"

namespace cutaway {

/// The error that the exception being handled stands for; for catch blocks only. Needs no memory if there is none left.
Error currentError() noexcept;

/// What `body` returns, a Result, or the error that an exception out of it stands for.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
    try {
        return body();
    } catch (...) {
        return currentError();
    }
}

}  // namespace cutaway
