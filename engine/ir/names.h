#pragma once
#include <string_view>

namespace cutaway {

/// Names that the text's own language uses; a node of such a name could not be told apart when read back, so none gets
/// it.
bool isReservedName(std::string_view name);

}  // namespace cutaway
