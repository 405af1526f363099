#pragma once
// What calls of plugins have taken and what went wrong, for whoever shows it.
#include <map>
#include <string>
#include <vector>

#include "cutaway/plugins.h"

namespace cutaway {

struct PluginCounts {
    int calls = 0, faults = 0;
    double milliseconds = 0;
    std::vector<PluginFault> lastFaults;  // from the earliest on

    void add(const PluginCounts& more);
    void addFault(const std::string& sentence);  // now
};
/// Of processes that are not the plugin's own here: a run's, and those of workers, by the plugin's file.
void addPluginUse(const std::string& file, const PluginCounts& counts);
PluginCounts pluginUse(const std::string& file);
/// In a worker, for its program: everything so far, which is no longer kept here.
std::map<std::string, PluginCounts> takePluginUse();

}  // namespace cutaway
