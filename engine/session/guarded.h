#pragma once
// The session's border: a bug inside becomes an error, and the session lives on.
#include <new>

#include "cutaway/result.h"
#include "engine/support/check.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// What `body` returns, a Result, or the error that an exception out of it stands for.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
    try {
        return body();
    } catch (const InternalError& bug) {
        return Error{ErrorCode::Internal, bug.what(), {}, {"this is a bug in Cutaway; the session goes on"}};
    } catch (const SizeError& error) {
        return invalidInput(error.what());
    } catch (const UnreadableData& data) {
        return data.error();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::Limit, "out of memory", {}, {}};
    } catch (const std::exception& error) {
        return Error{ErrorCode::Internal, error.what(), {}, {"this is a bug in Cutaway; the session goes on"}};
    }
}

}  // namespace cutaway
