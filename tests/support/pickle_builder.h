#pragma once
// Pickles and torch.save archives by hand, also ones that no honest writer would make.
#include <string>
#include <utility>
#include <vector>

namespace cutaway::testing::pickle {

std::string text(const std::string& value);  // BINUNICODE
std::string integer(int value);              // BININT
std::string real(double value);              // BINFLOAT
std::string global(const std::string& module, const std::string& name);
std::string tuple(const std::vector<std::string>& items);  // MARK ... TUPLE
std::string dict(const std::vector<std::pair<std::string, std::string>>& items);
std::string call(const std::string& callable, const std::vector<std::string>& arguments);
/// The persistent id of a storage; `cls` is a global.
std::string storage(const std::string& cls, const std::string& key, int numel, const std::string& location = "cpu");
/// torch._utils._rebuild_tensor_v2 over a storage; `extra` comes after the hooks.
std::string tensor(const std::string& storage, int offset, const std::vector<int>& sizes,
                   const std::vector<int>& strides, const std::vector<std::string>& extra = {});
inline const std::string kNone = "N", kTrue = "\x88", kFalse = "\x89";

/// PROTO 2, the value, STOP.
std::string whole(const std::string& value);
/// A torch.save zip: the pickle and data/<key> entries.
std::string archive(const std::string& pickle, const std::vector<std::pair<std::string, std::string>>& storages = {},
                    const std::vector<std::pair<std::string, std::string>>& others = {});

}  // namespace cutaway::testing::pickle
