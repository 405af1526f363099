#pragma once
// Places where tests make things go wrong, to see that errors end in words there.
#include <string>
#include <string_view>

namespace cutaway {

/// Throws what CUTAWAY_FAULT, or setFault, asks for at this place: "PLACE:NAME:KIND", NAME may be "*". KIND is one of
/// internal, logic_error, out_of_range, length_error, bad_alloc, runtime_error, system_error, bad_function_call,
/// bad_variant_access, int (no standard exception). Costs one load where nothing is asked for.
void faultPoint(std::string_view place, std::string_view name);

/// In place of the environment's; empty: none.
void setFault(const std::string& fault);

}  // namespace cutaway
