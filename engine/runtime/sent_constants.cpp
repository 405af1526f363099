#include "engine/runtime/sent_constants.h"

namespace cutaway {
namespace {

/// Smaller ones are sent each time: they cost less than their pages.
constexpr size_t kLeast = size_t{64} << 10;

Tensor whole(const std::shared_ptr<Storage>& storage) {
    const auto bytes = static_cast<int64_t>(storage->size());
    return Tensor(storage, DType::U8, {bytes}, {1});
}

}  // namespace

Result<std::optional<SharedMemory>> SentConstants::take(std::vector<Tensor>& tensors, ByteWriter& head) {
    std::vector<uint64_t> gone;
    for (auto known = m_sent.begin(); known != m_sent.end();) {
        const bool lives = !known->second.storage.expired();
        if (!lives) gone.push_back(known->second.number);
        known = lives ? std::next(known) : m_sent.erase(known);
    }
    head.count(gone.size());
    for (const uint64_t number : gone) head.pod(number);
    std::vector<std::pair<size_t, SentConstant>> places;
    std::vector<Tensor> fresh;
    std::vector<uint64_t> numbers;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const std::shared_ptr<Storage> storage = tensors[i].defined() ? tensors[i].storage() : nullptr;
        if (!storage || !storage->readOnly() || storage->size() < kLeast) continue;
        const auto [known, isNew] = m_sent.try_emplace(storage.get(), SentConstant{storage, m_next});
        if (isNew) {
            ++m_next;
            fresh.push_back(whole(storage));
            numbers.push_back(known->second.number);
        }
        places.emplace_back(i, known->second);
    }
    head.count(numbers.size());
    for (const uint64_t number : numbers) head.pod(number);
    head.count(places.size());
    for (const auto& [place, known] : places) {
        const Tensor& tensor = tensors[place];
        head.pod(static_cast<uint64_t>(place));
        head.pod(known.number);
        head.pod(tensor.dtype());
        head.pod(tensor.device());
        head.dims(tensor.sizes());
        head.dims(tensor.strides());
        head.pod(tensor.offset());
    }
    std::optional<SharedMemory> memory;
    if (!fresh.empty()) {
        CT_TRY(SharedMemory made, SharedMemory::create("the weights"));
        if (const auto written = writeMessage(made, 0, {}, fresh); !written) {
            for (auto known = m_sent.begin(); known != m_sent.end();)
                known = known->second.number >= numbers.front() ? m_sent.erase(known) : std::next(known);
            return written.error();
        }
        memory.emplace(std::move(made));
    }
    for (const auto& place : places) tensors[place.first] = Tensor();
    return memory;
}

Result<bool> ReceivedConstants::restore(ByteReader& head, const SharedMemory* memory, std::vector<Tensor>& tensors) {
    head.each([&] { m_received.erase(head.pod<uint64_t>()); });
    Message fresh;
    if (memory) {
        CT_TRY(fresh, readMessage(*memory, 0));
    }
    size_t next = 0;
    head.each([&] {
        const auto number = head.pod<uint64_t>();
        if (next >= fresh.tensors.size()) return head.fail();
        m_received[number] = fresh.tensors[next++].storage();
    });
    head.each([&] {
        const auto place = head.pod<uint64_t>(), number = head.pod<uint64_t>();
        const auto dtype = head.pod<DType>();
        const auto device = head.pod<Device>();
        Dims sizes = head.dims(), strides = head.dims();
        const auto offset = head.pod<int64_t>();
        const auto kept = m_received.find(number);
        if (kept == m_received.end() || place >= tensors.size() || sizes.size() != strides.size()) return head.fail();
        tensors[place] = Tensor(kept->second, dtype, std::move(sizes), std::move(strides), offset, device);
    });
    return !head.failed();
}

}  // namespace cutaway
