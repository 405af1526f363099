#pragma once
// What a plugin gives, as bytes for a worker of the same build.
#include "engine/libraries/plugin_rows.h"
#include "engine/runtime/wire.h"
#include "engine/support/plugin_use.h"

namespace cutaway {

void writePlugin(ByteWriter& out, const PluginLibrary& plugin);
PluginLibrary readPlugin(ByteReader& in);

/// What plugins' calls in a worker took since the last time, for its program; empty for nothing.
std::string takenPluginUse();
/// Adds it to what is known here. Damaged bytes are left out.
void addPluginUse(std::string_view taken);

}  // namespace cutaway
