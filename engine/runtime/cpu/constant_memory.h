#pragma once
// Which memory of a program's constants is still read, so that what libraries have packed is not held twice.
#include <functional>
#include <span>
#include <vector>

#include "engine/tensor/tensor.h"

namespace cutaway {

/// Gives whole pages of these bytes back to the system.
using ForgetBytes = std::function<void(std::span<std::byte>)>;

/// Memory in pieces: constants that overlap are one.
class ConstantMemory {
  public:
    explicit ConstantMemory(const std::vector<Tensor>& constants);

    /// Readers of each piece are counted anew from here on.
    void beginCount();
    void addReader(const void* constant, int by = 1);
    /// Gives back what has no reader.
    void forgetUnread(const ForgetBytes& forget);
    /// Whether something that was given back has readers.
    bool wantsGone() const;
    /// Bytes of all pieces, and of those that were not given back.
    int64_t bytes() const;
    int64_t bytesHeld() const;

  private:
    struct Piece {
        std::byte *begin, *end;
        int readers = 0;
        bool gone = false;
    };
    const Piece* find(const void* constant) const;

    std::vector<Piece> m_pieces;  // by address
};

}  // namespace cutaway
