#pragma once
// Memory for the results of a program's runs: the system takes longer to give new pages than results take to be copied,
// so these are there before the first run and serve the next one when nobody has the results of the last.
#include <memory>
#include <vector>

#include "engine/tensor/tensor.h"

namespace cutaway {

class ResultMemory {
  public:
    /// Has pages at hand for results of these sizes, but not for more than a few dozen megabytes.
    void prepare(const std::vector<size_t>& bytes);
    /// Of so many bytes, whatever is in them.
    std::shared_ptr<Storage> take(size_t bytes);
    /// What the latest answer did not take goes.
    void endAnswer();

  private:
    struct Piece {
        std::shared_ptr<Storage> storage;
        bool taken = false;  // for the answer that is being read
    };
    std::vector<Piece> m_pieces;
};

}  // namespace cutaway
