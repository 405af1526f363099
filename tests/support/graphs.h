#pragma once
// Graphs from text, for tests.
#include <memory>

#include "engine/ir/module.h"

namespace cutaway::testing {

/// Parses FX text; a text that does not parse fails the test with the parser's message and gives an empty module.
std::unique_ptr<Module> graph(const char* text);

}  // namespace cutaway::testing
