#pragma once
// Words as a shell takes them apart, and lists within a word.
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

/// The word as a POSIX shell reads it back, in quotes where it needs them.
std::string shellWord(std::string_view word);
/// A user's command on a file: "{}" stands for its path, else that is appended.
std::string commandOn(std::string command, std::string_view file);
/// Takes text apart as a POSIX shell does that expands nothing: blanks, quotes and backslashes. Errors: a quote that is
/// not closed.
Result<std::vector<std::string>> shellWords(std::string_view text);

/// `text` with a backslash before each of `marks` and each backslash.
std::string escaped(std::string_view text, std::string_view marks);
std::string unescaped(std::string_view text);
/// Where `mark` stands without a backslash before it; npos if nowhere.
size_t findPlain(std::string_view text, char mark, size_t from = 0);
/// The pieces between marks, still escaped.
std::vector<std::string_view> splitPlain(std::string_view text, char mark);

}  // namespace cutaway
