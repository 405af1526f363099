#pragma once
// Compiled kernels of earlier runs: shared libraries in a folder of the user's own, and which of them has the function
// that was made from what. It holds nothing that cannot be made again: whatever is wrong with it is as if it were
// empty.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cache/value_store.h"

namespace cutaway {

class KernelCache {
  public:
    /// `storePath`: of a ValueStore, beside which the libraries lie; empty = the user's own. Null if there can be none:
    /// no home, somebody else's folder, a file that is not a store.
    static std::shared_ptr<KernelCache> open(const std::string& storePath);

    /// The library with the function of that key, as it was kept: one that was changed since is not found.
    std::optional<std::string> find(const std::string& key);
    /// Takes a copy of a library that has the functions of these keys. The oldest go when all take more than 512 MiB.
    void keep(const std::string& library, const std::vector<std::string>& keys);

  private:
    KernelCache(std::shared_ptr<ValueStore> index, std::string folder)
        : m_index(std::move(index)), m_folder(std::move(folder)) {}
    void makeRoom() const;

    std::shared_ptr<ValueStore> m_index;
    std::string m_folder;
    std::map<std::string, bool> m_sound;  // files, by name, that are as they were kept
};

}  // namespace cutaway
