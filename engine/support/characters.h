#pragma once
// Characters of UTF-8 text: which ones names are made of. How text is shown so that it does no harm: visibleText
// (cutaway/words.h).
#include <cstdint>
#include <string>
#include <string_view>

#include "cutaway/words.h"

namespace cutaway {

/// A code point and the bytes it takes; 0 bytes where the text does not begin with UTF-8.
struct Character {
    uint32_t code = 0;
    size_t bytes = 0;
};
Character firstCharacter(std::string_view text);

/// Bytes of the character at the front if names of Python may hold it (letters, marks and digits of any script, '_'),
/// else 0.
size_t nameCharacter(std::string_view text);

/// At most `bytes` of the text; no character is cut in two.
std::string_view clipped(std::string_view text, size_t bytes);

}  // namespace cutaway
