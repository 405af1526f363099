#pragma once
// MD5, because structured traces state it for each payload (spec: input-formats TRC-2). Finds damage, not malice.
#include <string>
#include <string_view>

namespace cutaway {

/// 32 lower-case hexadecimal digits.
std::string md5Hex(std::string_view bytes);

}  // namespace cutaway
