#include "engine/runtime/cpu/plugin_library.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "cutaway/words.h"
#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/owned_call.h"
#include "engine/support/elapsed.h"
#include "engine/tensor/tensor.h"

namespace cutaway {
namespace {

constexpr size_t kConstants = 0, kOperands = 1, kResults = 2, kAreas = 3;
constexpr size_t kAlignment = 64, kBehind = 64;  // bytes behind each result that must stay as they are
constexpr int kUnwritten = 0xff, kMark = 0xa5;   // floats of kUnwritten are NaN

thread_local double t_handedOver = 0;

size_t onBoundary(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t elementBytesOf(const CtTensor& tensor) {
    int64_t elements = 1;
    for (int32_t d = 0; d < tensor.rank; ++d) elements *= tensor.sizes[d];
    return static_cast<size_t>(elements * byteSize(static_cast<DType>(tensor.dtype)));
}
bool isThere(const CtTensor& tensor) { return tensor.rank >= 0; }

/// The tensor's elements, at this address, with these strides.
Tensor tensorAt(const void* data, const CtTensor& tensor, const Dims& strides) {
    const Dims sizes = sizesOf(tensor);
    const auto dtype = static_cast<DType>(tensor.dtype);
    const auto bytes = static_cast<size_t>(extent(sizes, strides) * byteSize(dtype));
    return {Storage::view(data, bytes, nullptr), dtype, sizes, strides};
}
/// From one layout to another.
void copyElements(std::byte* to, const Dims& toStrides, const void* from, const Dims& fromStrides,
                  const CtTensor& tensor) {
    const size_t bytes = elementBytesOf(tensor);
    if (bytes == 0) return;
    if (toStrides == fromStrides && passedStrides(sizesOf(tensor), toStrides) == toStrides) {
        std::memcpy(to, from, bytes);
        return;
    }
    Tensor target = tensorAt(to, tensor, toStrides);
    copyInto(target, tensorAt(from, tensor, fromStrides));
}

void addArgument(std::vector<std::string>& texts, std::string name, const CtArgument& arg) {
    texts.push_back(std::move(name));
    char real[40];
    switch (arg.kind) {
        case CT_OPERAND: texts.push_back("tensor " + std::to_string(arg.integer)); break;
        case CT_INT: texts.push_back("int " + std::to_string(arg.integer)); break;
        case CT_TRUTH: texts.push_back("bool " + std::to_string(arg.integer)); break;
        case CT_REAL:
            std::snprintf(real, sizeof real, "real %.17g", arg.real);
            texts.emplace_back(real);
            break;
        case CT_TEXT: texts.push_back("text " + std::string(arg.text)); break;
        case CT_TYPE:
            texts.push_back("dtype " + std::string(info(static_cast<DType>(arg.integer)).abbreviation));
            break;
        case CT_LIST:
            texts.push_back("list " + std::to_string(arg.integer));
            for (int64_t i = 0; i < arg.integer; ++i) addArgument(texts, {}, arg.items[i]);
            break;
        default: texts.emplace_back("none"); break;
    }
}

std::string tensorText(const CtTensor& tensor, const SharedPlace& place) {
    if (!isThere(tensor)) return "none 0 - 0 0";
    std::string text =
        std::string(info(static_cast<DType>(tensor.dtype)).abbreviation) + " " + std::to_string(tensor.rank);
    for (int32_t d = 0; d < tensor.rank; ++d) text += " " + std::to_string(tensor.sizes[d]);
    for (const int64_t stride : place.strides) text += " " + std::to_string(stride);
    return text + " " + place.area + " " + std::to_string(place.offset) + " " + std::to_string(place.bytes);
}

}  // namespace

double handedOverMicroseconds() { return t_handedOver; }

Dims passedStrides(const Dims& sizes, const Dims& strides) {
    std::vector<size_t> order;
    for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] != 1) order.push_back(d);
    if (std::any_of(order.begin(), order.end(), [&](size_t d) { return sizes[d] < 0 || strides[d] < 0; }))
        return strides;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
    int64_t expected = 1;
    for (const size_t d : order) {
        if (strides[d] != expected) return contiguousStrides(sizes);
        expected *= sizes[d];
    }
    return strides;
}

PluginCall pluginCall(const PluginLibrary& library, const char* kind, const CtCall& call, int threads,
                      const std::vector<SharedPlace>& places) {
    PluginCall asked;
    asked.kind = kind;
    asked.index = library.index;
    asked.file = call.op;
    asked.name = library.title + ":";
    std::vector<std::string>& texts = asked.settings;
    texts = {std::to_string(threads), std::to_string(call.operandCount), std::to_string(call.resultCount)};
    for (int32_t i = 0; i < call.operandCount; ++i)
        texts.push_back(tensorText(call.operands[i], places[static_cast<size_t>(i)]));
    for (int32_t i = 0; i < call.resultCount; ++i)
        texts.push_back(tensorText(call.results[i], places[static_cast<size_t>(call.operandCount + i)]));
    for (int32_t i = 0; i < call.argCount; ++i) addArgument(texts, call.params[i], call.args[i]);
    return asked;
}

std::byte* PluginCalls::Area::reserve(size_t wanted) {
    if (bytes.size() < wanted) {
        const size_t all = std::max(wanted, bytes.size() + bytes.size() / 2);
        // What is not there when it is touched would end the process.
        const auto size = static_cast<off_t>(all);
        std::shared_ptr<const void> fresh;
        if (::fallocate(memory.descriptor(), 0, 0, size) != 0)
            throw LibraryRefusal("there is no memory for the tensors of its calls (" +
                                 bytesText(static_cast<int64_t>(all)) + ")");
        const auto shared = memory.share(all, fresh);
        if (!shared) throw LibraryRefusal(shared.error().message);
        bytes = *shared;
        owner = std::move(fresh);
    }
    return bytes.data();
}

Result<std::shared_ptr<PluginCalls>> PluginCalls::create(PluginLibrary library) {
    std::vector<Area> areas;
    for (size_t i = 0; i < kAreas; ++i) {
        CT_TRY(SharedMemory memory, SharedMemory::create("the tensors of " + library.title));
        Area area{std::move(memory)};
        area.lent = area.memory.descriptor();
        if (i != kResults) {
            // What the process is given of it can only be read: what it writes to an operand is a fault of its own.
            const std::string path = "/proc/self/fd/" + std::to_string(area.lent);
            area.lent = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
            area.ownsLent = area.lent >= 0;
            if (!area.ownsLent)
                return Error{ErrorCode::ToolFailed, "no memory can be shared with " + library.title, {}, {}};
        }
        areas.push_back(std::move(area));
    }
    return std::shared_ptr<PluginCalls>(new PluginCalls(std::move(library), std::move(areas)));
}

PluginCalls::PluginCalls(PluginLibrary library, std::vector<Area> areas)
    : m_library(std::move(library)), m_process(m_library.file, m_library.stamp, true), m_areas(std::move(areas)) {
    std::vector<int> lent;
    for (const Area& area : m_areas) lent.push_back(area.lent);
    m_process.lend(std::move(lent));
    m_process.letStartProcesses(m_library.starts);
}
PluginCalls::~PluginCalls() {
    for (const Area& area : m_areas)
        if (area.ownsLent) ::close(area.lent);
}

std::string PluginCalls::memoryText() const {
    std::string text;
    for (const Area& area : m_areas)
        text += (text.empty() ? "" : " ") + std::to_string(area.lent) + " " + std::to_string(area.bytes.size());
    return text;
}

/// Packed memory holds where each constant lies in the memory that the process has.
class PluginPlan final : public LibraryPlan {
  public:
    PluginPlan(std::shared_ptr<PluginCalls> calls, const CtCall& call, int threads)
        : m_calls(std::move(calls)), m_call(&call), m_threads(threads) {
        for (int32_t i = 0; i < call.operandCount; ++i) {
            const CtTensor& operand = call.operands[i];
            m_places.push_back({call.constant[i] != 0 ? 'c' : 'o', 0, elementBytesOf(operand),
                                passedStrides(sizesOf(operand), stridesOf(operand))});
        }
        for (int32_t i = 0; i < call.resultCount; ++i) {
            const CtTensor& result = call.results[i];
            if (!isThere(result)) m_places.emplace_back();
            else m_places.push_back({'r', 0, elementBytesOf(result), contiguousStrides(sizesOf(result))});
        }
    }
    bool packsAny() const {
        return std::any_of(m_places.begin(), m_places.end(), [](const SharedPlace& p) { return p.area == 'c'; });
    }
    bool reads(int operand) const override { return m_places[static_cast<size_t>(operand)].area == 'o'; }
    bool packs(int operand) const override { return !reads(operand); }
    bool packsLike(const LibraryPlan& other) const override {
        const auto* const same = dynamic_cast<const PluginPlan*>(&other);
        if (same == nullptr || same->m_calls != m_calls || same->m_call->operandCount != m_call->operandCount)
            return false;
        for (size_t i = 0; i < static_cast<size_t>(m_call->operandCount); ++i) {
            const SharedPlace &a = m_places[i], &b = same->m_places[i];
            if (a.area != b.area || (a.area == 'c' && (a.bytes != b.bytes || a.strides != b.strides))) return false;
        }
        return true;
    }
    void pack(const CtTensor* operands, std::byte* packed) const override {
        const std::lock_guard lock(m_calls->m_mutex);
        PluginCalls::Area& area = m_calls->m_areas[kConstants];
        for (size_t i = 0; i < static_cast<size_t>(m_call->operandCount); ++i) {
            if (m_places[i].area != 'c') continue;
            const uint64_t offset = onBoundary(area.used);
            std::byte* const base = area.reserve(offset + std::max<size_t>(m_places[i].bytes, 1));
            copyElements(base + offset, m_places[i].strides, operands[i].data, stridesOf(operands[i]), operands[i]);
            area.used = offset + m_places[i].bytes;
            std::memcpy(packed + i * sizeof offset, &offset, sizeof offset);
        }
    }
    void run(const LibraryRun& run) const override {
        const auto begin = std::chrono::steady_clock::now();
        const std::lock_guard lock(m_calls->m_mutex);
        std::vector<SharedPlace> places = m_places;
        place(places, run);
        std::byte* const results = m_calls->m_areas[kResults].bytes.data();
        const size_t first = static_cast<size_t>(m_call->operandCount);
        for (size_t i = first; i < places.size(); ++i) {
            if (places[i].area != 'r') continue;
            std::memset(results + places[i].offset, kUnwritten, places[i].bytes);
            std::memset(results + places[i].offset + places[i].bytes, kMark, kBehind);
        }
        const double own = compute(places);
        for (size_t i = first; i < places.size(); ++i) {
            if (places[i].area != 'r') continue;
            const CtTensor& result = run.results[i - first];
            const std::byte* const from = results + places[i].offset;
            const auto isMark = [](std::byte byte) { return byte == std::byte{kMark}; };
            if (!std::all_of(from + places[i].bytes, from + places[i].bytes + kBehind, isMark))
                throw LibraryRefusal(m_calls->m_library.title + ": it wrote behind the end of result " +
                                     std::to_string(i - first));
            copyElements(static_cast<std::byte*>(result.data), stridesOf(result), from, places[i].strides, result);
        }
        t_handedOver = std::max(0.0, millisecondsSince(begin) * 1000 - own);
    }
    std::vector<std::string> implementations() const override { return {m_calls->m_library.title}; }

  private:
    /// Operands into the shared memory, and where each tensor lies there.
    void place(std::vector<SharedPlace>& places, const LibraryRun& run) const {
        size_t used[kAreas] = {};
        const auto operands = static_cast<size_t>(m_call->operandCount);
        for (size_t i = 0; i < places.size(); ++i) {
            SharedPlace& at = places[i];
            if (at.area == 'c') std::memcpy(&at.offset, run.packed + i * sizeof at.offset, sizeof at.offset);
            if (at.area != 'o' && at.area != 'r') continue;
            size_t& end = used[at.area == 'o' ? kOperands : kResults];
            at.offset = onBoundary(end);
            end = at.offset + at.bytes + kBehind;
        }
        for (const size_t area : {kOperands, kResults}) m_calls->m_areas[area].reserve(used[area]);
        std::byte* const base = m_calls->m_areas[kOperands].bytes.data();
        for (size_t i = 0; i < operands; ++i)
            if (places[i].area == 'o')
                copyElements(base + places[i].offset, places[i].strides, run.operands[i].data,
                             stridesOf(run.operands[i]), run.operands[i]);
    }
    /// The microseconds that the library worked.
    double compute(const std::vector<SharedPlace>& places) const {
        PluginCall asked = pluginCall(m_calls->m_library, "compute", *m_call, m_threads, places);
        const std::string memory = m_calls->memoryText();
        asked.work = memory;
        const auto reply = m_calls->m_process.call(asked, {});
        if (!reply) throw LibraryRefusal(sentenceOf(reply.error()));
        double nanoseconds = 0;
        if (reply->said.size() >= 2 && reply->said[reply->said.size() - 2] == "took") {
            const std::string& digits = reply->said.back();
            std::from_chars(digits.data(), digits.data() + digits.size(), nanoseconds);
        }
        return nanoseconds / 1000;
    }

  public:
    static std::string sentenceOf(const Error& error) {
        std::string text = error.message;
        for (const std::string& note : error.notes) text += "; " + note;
        return text;
    }

  private:
    std::shared_ptr<PluginCalls> m_calls;
    const CtCall* m_call;  // outlives the plan, as libraries' calls do
    int m_threads;
    std::vector<SharedPlace> m_places;
};

Result<std::optional<TensorList>> computeByPlugin(const std::shared_ptr<PluginCalls>& calls, const Node& call,
                                                  const ValueSource& values, std::string& refusal) {
    std::vector<std::string> params;
    for (const Param& param : call.op().schema()->params) params.push_back(param.name);
    const auto describe = [](const Tensor& tensor) {
        return CallTensor{tensor.dtype(), tensor.sizes(), tensor.strides()};
    };
    TensorList results;
    std::vector<CallTensor> described;
    const auto add = [&](const ValueType& type) {
        const TensorType& tensor = *type.tensor();
        results.push_back(Tensor::empty(tensor.dtype, toInts(tensor.sizes),
                                        allInts(tensor.strides) ? toInts(tensor.strides) : Dims()));
        described.push_back(describe(results.back()));
    };
    if (const TupleType* several = call.type().tuple())
        for (const ValueType& type : *several) add(type);
    else add(call.type());
    const std::vector<Argument> args(call.args().begin(), call.args().end());
    const OwnedCall owned(
        call.op().name(), params, args, [&](const Node& node) { return describe(values.valueOf(node).at(0)); },
        described);
    std::vector<CtTensor> operands(owned.call().operands, owned.call().operands + owned.call().operandCount),
        places(owned.call().results, owned.call().results + owned.call().resultCount);
    for (size_t i = 0; i < operands.size(); ++i)
        operands[i].data = const_cast<void*>(values.valueOf(*owned.operands()[i]).at(0).data());
    for (size_t i = 0; i < places.size(); ++i) places[i].data = results[i].data();
    std::unique_ptr<LibraryPlan> plan;
    const bool taken = toldIfThrown([&] {
        CtNeeds needs{};
        plan = PluginCalls::plan(calls, owned.call(), 1, needs);
    });
    if (!taken) {
        refusal = lastLibraryError();
        return std::optional<TensorList>();
    }
    if (!toldIfThrown([&] { plan->run({operands.data(), places.data(), nullptr, nullptr, nullptr}); }))
        return Error{ErrorCode::ToolFailed, lastLibraryError(), call.name(), {}};
    return std::optional(std::move(results));
}

std::unique_ptr<LibraryPlan> PluginCalls::plan(const std::shared_ptr<PluginCalls>& calls, const CtCall& call,
                                               int threads, CtNeeds& needs) {
    auto plan = std::make_unique<PluginPlan>(calls, call, threads);
    std::vector<SharedPlace> places;
    for (int32_t i = 0; i < call.operandCount; ++i)
        places.push_back({'-', 0, 0, passedStrides(sizesOf(call.operands[i]), stridesOf(call.operands[i]))});
    for (int32_t i = 0; i < call.resultCount; ++i)
        places.push_back({'-', 0, 0, isThere(call.results[i]) ? contiguousStrides(sizesOf(call.results[i])) : Dims()});
    const auto reply = calls->m_process.call(pluginCall(calls->m_library, "takes", call, threads, places), {});
    if (!reply) throw LibraryRefusal(PluginPlan::sentenceOf(reply.error()));
    if (!reply->yes)
        throw LibraryRefusal(reply->said.size() >= 2
                                 ? visibleText(reply->said[1])
                                 : calls->m_library.title + " does not take it, and does not say why");
    needs = {};
    if (plan->packsAny()) needs.packed = static_cast<int64_t>(sizeof(uint64_t)) * call.operandCount;
    return plan;
}

}  // namespace cutaway
