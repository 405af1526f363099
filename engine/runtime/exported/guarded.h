#ifndef CUTAWAY_GUARDED_H
#define CUTAWAY_GUARDED_H
// Nothing is thrown through the C interface of an exported program.
#include <exception>
#include <new>
#include <string>

namespace ct {

/// This thread's last failure.
std::string& lastFailure();
/// What `body` returns; `otherwise` where it throws, and `told` gets the reason.
template <class Result, class Body>
Result guarded(Result otherwise, std::string& told, Body&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        told = "there is not enough memory";
    } catch (const std::exception& error) {
        told = error.what();
    }
    return otherwise;
}

}  // namespace ct
#endif
