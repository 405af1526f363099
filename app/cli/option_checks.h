#pragma once
// What options take, refused in words that name the value and the range.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::cli {

CLI::Validator wholeNumber(int64_t least, int64_t most);
/// A finite number, 0 or more.
CLI::Validator shareOrNumber();
/// One of these words; refused with the one that may have been meant.
CLI::Validator oneOf(std::vector<std::string> words);
/// The name of a backend.
CLI::Validator aBackend();
/// Refuses empty values of every option of every command: none of them means anything.
void refuseEmptyValues(CLI::App& app);

}  // namespace cutaway::cli
