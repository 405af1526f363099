#pragma once
// How shapes of JSON are written: as the JSON itself, with a sentence in place of each value.
//   "integer: counted from 1"   the type, and what it says. Types: string, integer, number, boolean, real (a number,
//                               or one of the strings NaN, Infinity and -Infinity: JSON has no numbers for these)
//   [SHAPE]                     a list of any length
//   [SHAPE, SHAPE]              a list of exactly these; of two and more
//   {"name": SHAPE}             an object with these keys and no others; "name?" may be absent or null, "*" is any name
#include <string>

#include "app/cli/json.h"

namespace cutaway::cli {

/// Where `json` is not of the shape, in a sentence; empty if it is.
std::string shapeProblem(const Json& json, const Json& shape, const std::string& at = "$");

}  // namespace cutaway::cli
