#pragma once
// Libraries that plugins give (plugins/cutaway_plugin.h), as rows like those of the table. They are in no table: a
// request that names one has a pass that asks it about calls (plugins/plugin_libraries.h), and a schedule holds its
// rows.
#include "engine/libraries/choose.h"
#include "engine/support/file_stamp.h"

namespace cutaway {

struct PluginLibrary {
    std::string name;   // "blas.products"
    std::string title;  // "plugin blas 1.0, library products"
    std::string file, hash;
    FileStamp stamp;      // of the file when it was read
    uint64_t index = 0;   // among the plugin's libraries
    bool starts = false;  // it may start other processes
    bool operator==(const PluginLibrary&) const = default;
};

/// One object for equal libraries and operators, which lives as long as the program, as rows of the table do.
const LibraryRow& pluginRow(const PluginLibrary& library, std::string_view op);

}  // namespace cutaway
