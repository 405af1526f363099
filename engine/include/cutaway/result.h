#pragma once
// Errors that a user, file, tool or device can cause are values: Result<T>. What only a bug can cause is CT_CHECK
// (engine/support/check.h).
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cutaway {

enum class ErrorCode {
    InvalidInput,  // the file or argument breaks a rule; `message` names the rule
    Unsupported,   // valid, but Cutaway cannot do it; `notes` say what to do instead
    NotFound,      // a file, name or step does not exist
    Limit,         // a time, memory or size limit was reached
    Cancelled,     // the user asked for it
    ToolFailed,    // a compiler, child process or device failed
    Internal,      // a CT_CHECK failed; a bug in Cutaway
};

/// What failed, where (entry, line, node or step; may be empty), and what to do next.
struct Error {
    ErrorCode code = ErrorCode::InvalidInput;
    std::string message;
    std::string where;
    std::vector<std::string> notes;

    /// One paragraph for a terminal: "where: message" and one line per note.
    std::string text() const;
};

inline Error invalidInput(std::string message, std::string where = {}) {
    return {ErrorCode::InvalidInput, std::move(message), std::move(where), {}};
}
inline Error unsupported(std::string message, std::string where = {}, std::vector<std::string> notes = {}) {
    return {ErrorCode::Unsupported, std::move(message), std::move(where), std::move(notes)};
}

/// A value or an Error; named like std::expected, which GCC 12 has only for C++23.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : m_state(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : m_state(std::in_place_index<1>, std::move(error)) {}
    template <class U>
    requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, Result>)
        Result(U&& value)
        : m_state(std::in_place_index<0>, std::forward<U>(value)) {}

    bool has_value() const { return m_state.index() == 0; }
    explicit operator bool() const { return has_value(); }
    T& value() & { return std::get<0>(m_state); }
    const T& value() const& { return std::get<0>(m_state); }
    T&& value() && { return std::get<0>(std::move(m_state)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    Error& error() & { return std::get<1>(m_state); }
    const Error& error() const& { return std::get<1>(m_state); }
    Error&& error() && { return std::get<1>(std::move(m_state)); }

  private:
    std::variant<T, Error> m_state;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : m_error(std::move(error)) {}

    bool has_value() const { return !m_error; }
    explicit operator bool() const { return has_value(); }
    Error& error() & { return *m_error; }
    const Error& error() const& { return *m_error; }
    Error&& error() && { return std::move(*m_error); }

  private:
    std::optional<Error> m_error;
};

#define CT_CONCAT_INNER(a, b) a##b
#define CT_CONCAT(a, b) CT_CONCAT_INNER(a, b)
/// CT_TRY(auto x, expression): declares x from a Result, or returns its Error from the enclosing function.
#define CT_TRY(declaration, ...) CT_TRY_IMPL(CT_CONCAT(ctTry, __COUNTER__), declaration, __VA_ARGS__)
#define CT_TRY_IMPL(temporary, declaration, ...)         \
    auto temporary = (__VA_ARGS__);                      \
    if (!temporary) return std::move(temporary).error(); \
    declaration = std::move(temporary).value()
/// CT_TRY_VOID(expression): returns the Error of a Result<void> (or any Result) from the enclosing function.
#define CT_TRY_VOID(...) \
    if (auto ctTryVoid = (__VA_ARGS__); !ctTryVoid) return std::move(ctTryVoid).error()

}  // namespace cutaway
