#include "engine/runtime/exported/tensor_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "engine/runtime/exported/host_support.h"
#include "engine/runtime/exported/json_reader.h"

namespace ct {
namespace {

constexpr const char* kTypes[] = {"U8",    "I8",  "I16",   "I32",  "I64",  "F16", "F32", "F64",
                                  nullptr, "C64", nullptr, "BOOL", "BF16", "U16", "U32", "U64"};

class Descriptor {
  public:
    explicit Descriptor(const std::string& path) : m_number(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (m_number < 0) throw std::runtime_error(std::strerror(errno));
    }
    ~Descriptor() { ::close(m_number); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return m_number; }

  private:
    int m_number;
};

std::string escapedText(const std::string& text) {
    std::string all;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        char unit[8];
        std::snprintf(unit, sizeof unit, "\\u%04x", byte);
        if (byte < ' ') all += unit;
        else if (c == '"' || c == '\\') all += std::string("\\") + c;
        else all += c;
    }
    return "\"" + all + "\"";
}

}  // namespace

TensorFile::TensorFile(const std::string& path) : m_path(path) {
    try {
        const Descriptor file(path);
        struct stat info {};
        if (::fstat(file.number(), &info) != 0) throw std::runtime_error(std::strerror(errno));
        if (!S_ISREG(info.st_mode)) throw std::runtime_error("it is not a file");
        m_bytes = static_cast<size_t>(info.st_size);
        if (m_bytes == 0) throw std::runtime_error("it is empty");
        // Private: the file stays as it is whatever is written to.
        m_memory = ::mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number(), 0);
        if (m_memory == MAP_FAILED) {
            m_memory = nullptr;
            throw std::runtime_error(std::strerror(errno));
        }
        parse(static_cast<char*>(m_memory), m_bytes);
    } catch (const std::exception& error) {
        if (m_memory != nullptr) ::munmap(m_memory, m_bytes);
        throw std::runtime_error(path + ": " + error.what());
    }
}

// Nobody writes to the tensors of a file but whoever mapped it.
TensorFile::TensorFile(const std::string& name, const char* bytes, size_t size) : m_path(name) {
    try {
        parse(const_cast<char*>(bytes), size);
    } catch (const std::exception& error) {
        throw std::runtime_error(name + ": " + error.what());
    }
}

void TensorFile::parse(char* bytes, size_t size) {
    if (size < 8) throw std::runtime_error("it is too short for a safetensors file");
    uint64_t headerBytes = 0;
    std::memcpy(&headerBytes, bytes, 8);
    if (headerBytes > size - 8) throw std::runtime_error("its header is longer than the file");
    char* const data = bytes + 8 + headerBytes;
    const auto dataBytes = static_cast<int64_t>(size - 8 - headerBytes);
    JsonReader reader(std::string_view(bytes + 8, headerBytes));
    reader.object([&](const std::string& name) {
        if (name == "__metadata__") return reader.object([&](const std::string&) { reader.text(); });
        auto entry = std::make_unique<Entry>();
        entry->name = name;
        std::string dtype;
        std::vector<int64_t> places;
        reader.object([&](const std::string& key) {
            if (key == "dtype") dtype = reader.text();
            else if (key == "shape") entry->sizes = reader.numbers();
            else if (key == "data_offsets") places = reader.numbers();
            else JsonReader::fail();
        });
        if (places.size() != 2) JsonReader::fail();
        add(*entry, dtype, places[0], places[1], dataBytes, data);
        m_entries.push_back(std::move(entry));
    });
}

TensorFile::~TensorFile() {
    if (m_memory != nullptr) ::munmap(m_memory, m_bytes);
}

void TensorFile::add(Entry& entry, const std::string& dtype, int64_t begin, int64_t end, int64_t dataBytes,
                     char* data) {
    int32_t type = -1;
    for (int32_t i = 0; i <= CT_U64; ++i)
        if (kTypes[i] != nullptr && dtype == kTypes[i]) type = i;
    if (type < 0)
        throw std::runtime_error("tensor '" + entry.name + "' has the dtype " + dtype + ", which no program reads");
    int64_t bytes = bytesOf(type);
    for (const int64_t size : entry.sizes)
        if (__builtin_mul_overflow(bytes, size, &bytes)) bytes = -1;
    if (begin > end || end > dataBytes || end - begin != bytes || entry.sizes.size() > CT_MAX_RANK)
        throw std::runtime_error("tensor '" + entry.name + "' does not lie where its sizes say");
    entry.strides.assign(entry.sizes.size(), 1);
    for (size_t d = entry.sizes.size(); d-- > 1;) entry.strides[d - 1] = entry.strides[d] * entry.sizes[d];
    char* at = data + begin;
    if (reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(bytesOf(type)) != 0) {
        entry.copy.assign(at, at + bytes);
        at = entry.copy.data();
    }
    entry.tensor = {at, type, static_cast<int32_t>(entry.sizes.size()), entry.sizes.data(), entry.strides.data()};
}

const CtTensor* TensorFile::find(const std::string& name) const {
    for (const auto& entry : m_entries)
        if (entry->name == name) return &entry->tensor;
    return nullptr;
}

void writeTensorFile(const std::string& path, const char* const* names, const CtTensor* tensors, int32_t count) {
    std::string header = "{";
    int64_t end = 0;
    std::vector<std::vector<int64_t>> strides;
    std::vector<int64_t> bytes;
    for (int32_t i = 0; i < count; ++i) {
        const CtTensor& tensor = tensors[i];
        const char* const type = tensor.dtype >= 0 && tensor.dtype <= CT_U64 ? kTypes[tensor.dtype] : nullptr;
        if (type == nullptr || tensor.rank < 0)
            throw std::runtime_error(path + ": '" + names[i] + "' has a dtype that safetensors has no name for");
        int64_t elements = 1;
        std::string shape;
        strides.emplace_back(static_cast<size_t>(tensor.rank), 1);
        for (int32_t d = tensor.rank; d-- > 0;) {
            strides.back()[static_cast<size_t>(d)] = elements;
            elements *= tensor.sizes[d];
        }
        for (int32_t d = 0; d < tensor.rank; ++d) shape += (d > 0 ? "," : "") + std::to_string(tensor.sizes[d]);
        bytes.push_back(elements * bytesOf(tensor.dtype));
        header += (i > 0 ? "," : "") + escapedText(names[i]) + ":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
                  "],\"data_offsets\":[" + std::to_string(end) + "," + std::to_string(end + bytes.back()) + "]}";
        end += bytes.back();
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
    bool whole = file != nullptr;
    const auto put = [&](const void* from, size_t size) {
        whole = whole && (size == 0 || std::fwrite(from, 1, size, file.get()) == size);
    };
    const uint64_t headerBytes = header.size();
    put(&headerBytes, 8);
    put(header.data(), header.size());
    for (int32_t i = 0; i < count; ++i) {
        std::vector<char> row(static_cast<size_t>(bytes[static_cast<size_t>(i)]));
        layOut(tensors[i], strides[static_cast<size_t>(i)].data(), row.data());
        put(row.data(), row.size());
    }
    if (!whole || std::fflush(file.get()) != 0) throw std::runtime_error(path + ": " + std::strerror(errno));
}

}  // namespace ct
