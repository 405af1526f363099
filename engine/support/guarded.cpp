#include "cutaway/guarded.h"

#include <system_error>

#include "cutaway/words.h"
#include "engine/support/check.h"
#include "engine/support/out_of_memory.h"
#include "engine/support/unreadable_data.h"

namespace cutaway {
namespace {

/// Rethrows what is being handled to learn its type.
Error described() {
    const std::vector<std::string> bug = {"this is a bug in Cutaway; the session goes on"};
    const std::vector<std::string> smaller = {"give smaller inputs, or close other programs"};
    try {
        throw;
    } catch (const InternalError& error) {
        return {ErrorCode::Internal, error.what(), {}, bug};
    } catch (const UnreadableData& error) {
        return error.error();
    } catch (const SizeError& error) {
        return invalidInput(error.what());
    } catch (const OutOfMemory& error) {
        return {ErrorCode::Limit,
                "out of memory: " + bytesText(static_cast<int64_t>(error.bytes())) + " could not be had",
                {},
                smaller};
    } catch (const std::bad_alloc&) {
        return {ErrorCode::Limit, "out of memory", {}, smaller};
    } catch (const std::length_error&) {
        return {ErrorCode::Limit, "a size is larger than any memory", {}, {"give smaller sizes"}};
    } catch (const std::system_error& error) {
        return {ErrorCode::ToolFailed, std::string("the system refuses: ") + error.what(), {}, {}};
    } catch (const std::exception& error) {
        return {ErrorCode::Internal, std::string("unexpected: ") + error.what(), {}, bug};
    } catch (...) {
        return {ErrorCode::Internal, "an unexpected exception", {}, bug};
    }
}

}  // namespace

Error currentError() noexcept {
    try {
        return described();
    } catch (...) {
        Error plain;
        plain.code = ErrorCode::Limit;
        plain.message = "out of memory";  // short enough to need none
        return plain;
    }
}

}  // namespace cutaway
