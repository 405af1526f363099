#pragma once
// Entries of the cache of operators, as the session's functions share them.
#include "cutaway/operators.h"
#include "engine/cache/entry_index.h"
#include "engine/cache/operator_cache.h"
#include "engine/cache/sealed_folder.h"

namespace cutaway {

/// The folder that a user means; empty: there is none, for want of a home.
std::string operatorCacheFolder(const std::string& given);
/// The index of a cache. None, with a remark: it cannot be used.
std::optional<EntryIndex> operatorIndex(const std::string& root, std::vector<std::string>& remarks);
/// "KEY" of "lib/KEY/libadd.so"; empty for another form, which is PyTorch's.
std::string keyOf(const OperatorRecord& record);
OperatorPlace placeOf(const OperatorEntry& entry);

// What lies in the folder of an entry, beside the library and its sources.
constexpr const char* kOperatorGraph = "operator.py";
constexpr const char* kOperatorInputs = "inputs.safetensors";

}  // namespace cutaway
