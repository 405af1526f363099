#pragma once
// What a plugin gives, as bytes for a worker of the same build.
#include "engine/libraries/plugin_rows.h"
#include "engine/runtime/wire.h"

namespace cutaway {

void writePlugin(ByteWriter& out, const PluginLibrary& plugin);
PluginLibrary readPlugin(ByteReader& in);

}  // namespace cutaway
