#ifndef CUTAWAY_SHA256_H
#define CUTAWAY_SHA256_H
// SHA-256, as sha256sum gives it. C++17 and nothing of the engine, since exported programs carry this file.
#include <cstddef>
#include <cstdint>
#include <string>

namespace cutaway {

class Sha256 {
  public:
    Sha256& add(const void* data, size_t bytes);
    /// 64 letters; nothing may be added afterwards.
    std::string hex();

  private:
    uint32_t m_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint64_t m_bytes = 0;
    unsigned char m_block[64] = {};
};
inline std::string sha256(const void* data, size_t bytes) { return Sha256().add(data, bytes).hex(); }

}  // namespace cutaway
#endif
