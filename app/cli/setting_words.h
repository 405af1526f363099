#pragma once
// Lists in the table of settings stand as words with blanks between them (cutaway/settings.h: owners, choices).
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::cli {

std::vector<std::string> words(std::string_view text);

}  // namespace cutaway::cli
