#include "engine/runtime/message.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "cutaway/guarded.h"
#include "engine/runtime/wire.h"
#include "engine/support/process_memory.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

constexpr uint64_t kMagic = 0x33304b52574b5443;  // "CTKWRK03"
constexpr size_t kAlignment = 64;                // whole vectors
// Large blocks begin at pages of their own, so that forget() gives all of one back: a page that two share stays.
constexpr size_t kPage = 4096;

/// Where the bytes of a block are.
enum class MessagePlace : uint8_t { Message, Writer, Reader };

size_t aligned(size_t offset, size_t to = kAlignment) { return (offset + to - 1) / to * to; }

/// The bytes of its storage that a tensor reaches.
std::pair<size_t, size_t> reach(const Tensor& tensor) {
    if (tensor.numel() == 0) return {0, 0};
    int64_t first = tensor.offset(), last = tensor.offset();
    for (size_t d = 0; d < tensor.sizes().size(); ++d) {
        const int64_t step = (tensor.sizes()[d] - 1) * tensor.strides()[d];
        (step < 0 ? first : last) += step;
    }
    const auto item = static_cast<size_t>(byteSize(tensor.dtype()));
    return {static_cast<size_t>(first) * item, static_cast<size_t>(last + 1) * item};
}

/// The part of a storage that is sent, and its offset from the first block.
struct Block {
    std::shared_ptr<Storage> storage;
    size_t begin = 0, end = 0, at = 0;

    bool large() const { return end - begin >= kLargeBlock; }
    /// Returns where the next one may begin.
    size_t placeBehind(size_t others) {
        const size_t unit = large() ? kPage : kAlignment;
        at = aligned(others, unit);
        return at + aligned(end - begin, unit);
    }
};

struct Blocks {
    std::vector<Block> blocks;
    std::map<const Storage*, size_t> of;  // looked up by address, never iterated
    size_t bytes = 0;

    explicit Blocks(const std::vector<Tensor>& tensors) {
        for (const Tensor& tensor : tensors) {
            if (!tensor.defined()) continue;
            const auto [begin, end] = reach(tensor);
            const auto [known, fresh] = of.try_emplace(tensor.storage().get(), blocks.size());
            if (fresh) blocks.push_back({tensor.storage(), begin, end, 0});
            Block& block = blocks[known->second];
            if (begin == end) continue;
            const bool empty = block.begin == block.end;
            block.begin = empty ? begin : std::min(block.begin, begin);
            block.end = std::max(block.end, end);
        }
        for (Block& block : blocks) {
            // Elements keep their place in a vector.
            block.begin -= block.begin % kAlignment;
            bytes = block.placeBehind(bytes);
        }
    }
};

Result<void> writeBlock(SharedMemory& memory, size_t at, const Block& block) {
    if (block.begin >= block.end) return {};
    CT_TRY(const std::shared_ptr<Storage> storage, Storage::forOneUse(block.storage));
    const auto* bytes = reinterpret_cast<const char*>(storage->data());
    return memory.write(at + block.at, {bytes + block.begin, block.end - block.begin});
}

/// Limits how much is read or computed at once. Computing a weight takes several times its bytes, so two large ones
/// follow each other.
class Room {
  public:
    void take(size_t bytes) {
        std::unique_lock lock(m_mutex);
        m_given.wait(lock, [&] { return m_taken == 0 || m_taken + bytes <= kBytes; });
        m_taken += bytes;
    }
    void give(size_t bytes) {
        const std::lock_guard lock(m_mutex);
        m_taken -= bytes;
        m_given.notify_all();
    }

  private:
    static constexpr size_t kBytes = size_t{8} << 20;
    std::mutex m_mutex;
    std::condition_variable m_given;
    size_t m_taken = 0;
};

Result<void> writeBlocks(SharedMemory& memory, size_t at, const std::vector<Block>& blocks, int threads,
                         const Progress& progress) {
    std::vector<std::optional<Error>> errors(blocks.size());
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    Room room;
    const auto work = [&](int thread) {
        for (size_t i = next++; i < blocks.size() && !failed && !progress.cancelled(); i = next++) {
            if (thread == 0 && blocks.size() > 1)
                progress.say(static_cast<double>(i) / static_cast<double>(blocks.size()), "handing weights over");
            const size_t bytes = blocks[i].end - blocks[i].begin;
            room.take(bytes);
            const auto written = guarded([&] { return writeBlock(memory, at, blocks[i]); });
            room.give(bytes);
            if (written) continue;
            errors[i] = written.error();
            failed = true;
        }
    };
    if (threads > 1 && blocks.size() > 1) runParts(std::min(threads, static_cast<int>(blocks.size())), work);
    else work(0);
    for (const std::optional<Error>& error : errors)
        if (error) return *error;
    if (progress.cancelled()) return Error{ErrorCode::Cancelled, "handing weights over was cancelled", {}, {}};
    return {};
}

}  // namespace

Result<void> writeMessage(SharedMemory& memory, size_t offset, std::string_view text,
                          const std::vector<Tensor>& tensors, int threads, const Progress& progress,
                          const WriteOptions& options) {
    const Blocks layout(tensors);
    std::vector<Block> written;
    size_t bytes = 0;
    ByteWriter head;
    head.text(text);
    head.count(layout.blocks.size());
    for (const Block& block : layout.blocks) {
        const auto found = options.atReader ? options.atReader->find(*block.storage) : std::nullopt;
        if (found) {
            head.pod(MessagePlace::Reader);
            head.pod(*found + block.begin);
        } else if (options.addresses && block.large()) {
            head.pod(MessagePlace::Writer);
            head.pod(uint64_t{reinterpret_cast<uintptr_t>(block.storage->data() + block.begin)});
        } else {
            bytes = written.emplace_back(block).placeBehind(bytes);
            head.pod(MessagePlace::Message);
            head.pod(uint64_t{written.back().at});
        }
        head.pod(uint64_t{block.end - block.begin});
    }
    head.count(tensors.size());
    for (const Tensor& tensor : tensors) {
        head.pod(tensor.defined());
        if (!tensor.defined()) continue;
        const size_t number = layout.of.at(tensor.storage().get());
        head.pod(static_cast<uint64_t>(number));
        head.pod(tensor.dtype());
        head.pod(tensor.device());
        head.dims(tensor.sizes());
        head.dims(tensor.strides());
        head.pod(tensor.offset() - static_cast<int64_t>(layout.blocks[number].begin) / byteSize(tensor.dtype()));
    }
    ByteWriter start;
    start.pod(kMagic);
    start.count(head.bytes.size());
    const size_t data = aligned(offset + start.bytes.size() + head.bytes.size(), kPage);
    CT_TRY_VOID(memory.write(offset, start.bytes + head.bytes));
    return writeBlocks(memory, data, written, threads, progress);
}

namespace {

/// A tensor of a message, before its memory is there.
struct Described {
    bool defined = false;
    uint64_t block = 0;
    DType dtype = DType::F32;
    Device device;
    Dims sizes, strides;
    int64_t offset = 0;
};
struct Placed {
    MessagePlace place = MessagePlace::Message;
    uint64_t at = 0;
    size_t bytes = 0;
    bool wanted = false;  // by a tensor that is not left where it lies
};

Described readTensor(ByteReader& in, std::vector<Placed>& blocks, bool left) {
    Described tensor;
    tensor.defined = in.pod<bool>();
    if (!tensor.defined) return tensor;
    tensor.block = in.pod<uint64_t>();
    tensor.dtype = in.pod<DType>();
    tensor.device = in.pod<Device>();
    tensor.sizes = in.dims();
    tensor.strides = in.dims();
    tensor.offset = in.pod<int64_t>();
    if (tensor.block >= blocks.size() || tensor.sizes.size() != tensor.strides.size()) in.fail();
    else blocks[tensor.block].wanted |= !left;
    return tensor;
}

}  // namespace

Result<Message> readMessage(const SharedMemory& memory, size_t offset, const ReadOptions& options) {
    const Error damaged{ErrorCode::ToolFailed,
                        "what the worker and its program tell each other is damaged",
                        {},
                        {"both must be of one version"}};
    std::shared_ptr<const void> owner;
    CT_TRY(const std::span<std::byte> all, memory.map(owner));
    const std::string_view bytes(reinterpret_cast<const char*>(all.data()), all.size());
    if (bytes.size() < offset) return damaged;
    ByteReader start(bytes.substr(offset));
    constexpr size_t kStart = 2 * sizeof(uint64_t);
    if (start.pod<uint64_t>() != kMagic) return damaged;
    const size_t size = start.count();
    if (start.failed() || size > bytes.size() - offset - kStart) return damaged;
    ByteReader in(bytes.substr(offset + kStart, size));
    const size_t data = aligned(offset + kStart + size, kPage);

    Message message;
    message.bytes = all;
    message.text = in.text();
    std::vector<Placed> blocks;
    in.each([&] {
        Placed& block = blocks.emplace_back();
        block.place = in.pod<MessagePlace>();
        block.at = in.pod<uint64_t>();
        block.bytes = in.pod<uint64_t>();
    });
    std::vector<Described> tensors;
    in.each([&] {
        const bool left = options.leaves && options.left && options.leaves(tensors.size());
        tensors.push_back(readTensor(in, blocks, left));
    });
    if (in.failed()) return damaged;

    std::vector<std::shared_ptr<Storage>> storages;
    for (const Placed& block : blocks) {
        const size_t at = block.at, length = block.bytes;
        if (block.place == MessagePlace::Message) {
            if (length > 0 && (at > bytes.size() || data + at > bytes.size() || length > bytes.size() - data - at))
                return damaged;
            storages.push_back(Storage::view(all.data() + (length > 0 ? data + at : 0), length, owner));
        } else if (block.place == MessagePlace::Reader) {
            const std::shared_ptr<const void> own = options.own ? options.own(at, length) : nullptr;
            if (!own) return damaged;
            storages.push_back(Storage::view(reinterpret_cast<const void*>(at), length, own));
        } else {
            if (block.place != MessagePlace::Writer || options.process == 0 || (!block.wanted && !options.left))
                return damaged;
            message.stayed = true;
            storages.push_back(!block.wanted    ? options.left->add(at, length)
                               : options.memory ? options.memory->take(length)
                                                : Storage::allocateUninitialized(length));
            if (block.wanted) CT_TRY_VOID(readProcess(options.process, at, {storages.back()->data(), length}));
        }
    }
    if (options.memory) options.memory->endAnswer();
    for (Described& tensor : tensors)
        message.tensors.push_back(tensor.defined ? Tensor(storages[tensor.block], tensor.dtype, std::move(tensor.sizes),
                                                          std::move(tensor.strides), tensor.offset, tensor.device)
                                                 : Tensor());
    return message;
}

int64_t bytesOf(const std::vector<Tensor>& tensors) { return static_cast<int64_t>(Blocks(tensors).bytes); }

}  // namespace cutaway
