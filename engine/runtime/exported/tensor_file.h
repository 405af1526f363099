#ifndef CUTAWAY_TENSOR_FILE_H
#define CUTAWAY_TENSOR_FILE_H
// safetensors files as exported programs read and write them. C++17 and nothing of the engine.
#include <memory>
#include <string>
#include <vector>

#include "engine/libraries/library.h"

namespace ct {

/// A file in memory; its tensors are row-major and lie in it. Only pages that are read take memory.
class TensorFile {
  public:
    /// Throws std::runtime_error with the path and what is wrong.
    explicit TensorFile(const std::string& path);
    /// Bytes of a file that lie in memory already, and stay there.
    TensorFile(const std::string& name, const char* bytes, size_t size);
    ~TensorFile();
    TensorFile(const TensorFile&) = delete;
    TensorFile& operator=(const TensorFile&) = delete;

    const std::string& path() const { return m_path; }
    /// All of the file.
    const void* bytes() const { return m_memory; }
    size_t size() const { return m_bytes; }
    size_t count() const { return m_entries.size(); }
    const std::string& name(size_t i) const { return m_entries[i]->name; }
    const CtTensor& tensor(size_t i) const { return m_entries[i]->tensor; }
    /// Null if there is none of that name.
    const CtTensor* find(const std::string& name) const;

  private:
    struct Entry {
        std::string name;
        std::vector<int64_t> sizes, strides;
        std::vector<char> copy;  // of data that lies at an odd address
        CtTensor tensor{};
    };
    void parse(char* bytes, size_t size);
    void add(Entry& entry, const std::string& dtype, int64_t begin, int64_t end, int64_t dataBytes, char* data);

    std::string m_path;
    void* m_memory = nullptr;
    size_t m_bytes = 0;
    std::vector<std::unique_ptr<Entry>> m_entries;
};

/// Tensors of any strides. Throws std::runtime_error.
void writeTensorFile(const std::string& path, const char* const* names, const CtTensor* tensors, int32_t count);

}  // namespace ct
#endif
