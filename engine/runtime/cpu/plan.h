#pragma once
// A scheduled program with every number filled in, ready to be sent to another process: no node, no expression, no
// symbol is left, only values by number, calls in order, and how big everything is.
#include <map>

#include "engine/codegen/cpp_printer.h"
#include "engine/schedule/schedule.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct PlanValue {
    enum class Kind : uint8_t {
        Given,   // an input or constant; `index` into the tensors that come with the plan
        Arena,   // at `offset` bytes of the arena
        Adopted, // whatever tensor the reference kernel returned
        View,    // of value `index`, `offset` elements after its first
    };
    Kind kind = Kind::Arena;
    int64_t index = -1, offset = 0;
    DType dtype = DType::F32;
    Dims sizes, strides;
    bool constant = false;  // never changes between runs: libraries may repack it once
};
struct PlanCall {
    CallKind kind = CallKind::Kernel;
    std::string function;             // kernel's symbol, or the op's full name
    std::vector<int64_t> buffers;     // kernel: value numbers
    std::vector<int64_t> sizes;       // kernel: values of its size symbols
    int64_t range = 1, work = 0;      // kernel: parallel range; rough cost of all of it, in element operations
    std::vector<Argument> args;       // others: nodes are placeholders named "v<number>"
    ValueType type;                   // others: result type, sizes as numbers
    std::vector<int64_t> results;     // others: value numbers, -1 for results that are not tensors
};
struct Plan {
    std::vector<PlanValue> values;
    std::vector<PlanCall> calls;
    std::vector<int64_t> outputs;     // value numbers; -1 for a returned None
    int64_t arenaBytes = 0;
    /// Placeholders that PlanCall::args refer to; value number in their names.
    std::unique_ptr<Graph> names = std::make_unique<Graph>();
};

/// What comes in with the plan: inputs in placeholder order (numbers as 0-d tensors), then constants.
struct BoundProgram {
    Plan plan;
    std::vector<Tensor> given;
};
/// Binds size symbols from the inputs' sizes and fills in all numbers. Errors name the input that does not fit.
Result<BoundProgram> bindProgram(const ScheduledProgram& program, const std::vector<PrintedKernel>& printed, const std::vector<Tensor>& inputs);

// Bytes between processes of the same build on the same machine.
std::string serialize(const Plan& plan);
Result<Plan> deserializePlan(std::string_view bytes);

class ByteWriter {
  public:
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void pod(const T& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void text(std::string_view value) {
        pod(static_cast<uint64_t>(value.size()));
        bytes.append(value);
    }
    void dims(const Dims& value) {
        pod(static_cast<uint64_t>(value.size()));
        for (int64_t d : value) pod(d);
    }
    std::string bytes;
};
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : m_rest(bytes), m_total(bytes.size()) {}
    template <class T>
        requires std::is_trivially_copyable_v<T>
    T pod() {
        T value{};
        if (m_rest.size() < sizeof value) m_failed = true;
        else std::memcpy(&value, m_rest.data(), sizeof value), m_rest.remove_prefix(sizeof value);
        return value;
    }
    std::string text() { return std::string(raw(count())); }
    Dims dims() {
        Dims value(count());
        for (int64_t& d : value) d = pod<int64_t>();
        return value;
    }
    /// A length that the rest can still hold; 0 after an error.
    size_t count() {
        const auto value = pod<uint64_t>();
        if (value > m_rest.size()) m_failed = true;
        return m_failed ? 0 : static_cast<size_t>(value);
    }
    std::string_view raw(size_t size) {
        if (size > m_rest.size()) m_failed = true, size = 0;
        const std::string_view value = m_rest.substr(0, size);
        m_rest.remove_prefix(size);
        return value;
    }
    /// Skips to a multiple of `unit` bytes from the start.
    void align(size_t unit) { raw((unit - (m_total - m_rest.size()) % unit) % unit); }
    bool failed() const { return m_failed; }

  private:
    std::string_view m_rest;
    size_t m_total;
    bool m_failed = false;
};
void writeTensor(ByteWriter& out, const Tensor& tensor);
Tensor readTensor(ByteReader& in);

}  // namespace cutaway
