#pragma once
// Messages between a program and its worker, as bytes. Both ends are the same build on the same machine; a damaged
// message is an error, never a crash.
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "cutaway/result.h"
#include "engine/ir/argument.h"
#include "engine/ir/type.h"

namespace cutaway {

class ByteWriter {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void pod(const T& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void count(size_t value) { pod(static_cast<uint64_t>(value)); }
    void text(std::string_view value) {
        count(value.size());
        bytes.append(value);
    }
    void dims(const Dims& value) {
        count(value.size());
        for (int64_t d : value) pod(d);
    }
    std::string bytes;
};

class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : m_rest(bytes) {}
    template <class T>
    requires std::is_trivially_copyable_v<T> T pod() {
        if constexpr (std::is_same_v<T, bool>) {  // other bytes than 0 and 1 are not a bool
            const auto byte = pod<uint8_t>();
            if (byte > 1) m_failed = true;
            return byte == 1;
        }
        T value{};
        if (m_rest.size() < sizeof value) m_failed = true;
        else {
            std::memcpy(&value, m_rest.data(), sizeof value);
            m_rest.remove_prefix(sizeof value);
        }
        return value;
    }
    std::string_view text() {
        const size_t size = count();
        const std::string_view value = m_rest.substr(0, size);
        m_rest.remove_prefix(size);
        return value;
    }
    Dims dims() {
        Dims value(count());
        for (int64_t& d : value) d = pod<int64_t>();
        return value;
    }
    /// A length, checked against the bytes that are left; 0 after an error.
    size_t count() {
        const auto value = pod<uint64_t>();
        if (value > m_rest.size()) m_failed = true;
        return m_failed ? 0 : static_cast<size_t>(value);
    }
    /// Reads a count and calls read() that often, but no more after an error.
    template <class Read>
    void each(Read&& read) {
        const size_t items = count();
        for (size_t i = 0; i < items && !m_failed; ++i) read();
    }
    void fail() { m_failed = true; }
    bool failed() const { return m_failed; }

  private:
    std::string_view m_rest;
    bool m_failed = false;
};

/// Nodes go as numbers that the two ends agree on.
using NodeNumber = std::function<uint32_t(const Node&)>;
using NodeAt = std::function<Node*(uint32_t)>;

void writeArgument(ByteWriter& out, const Argument& arg, const NodeNumber& number);
Argument readArgument(ByteReader& in, const NodeAt& node);
void writeExpr(ByteWriter& out, const Expr& expr);
Expr readExpr(ByteReader& in);
void writeSize(ByteWriter& out, const SymInt& size);
SymInt readSize(ByteReader& in);
void writeType(ByteWriter& out, const ValueType& type);
ValueType readType(ByteReader& in);
void writeError(ByteWriter& out, const Error& error);
Error readError(ByteReader& in);

}  // namespace cutaway
