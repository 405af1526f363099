#include "engine/numerics/spill.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>

namespace cutaway {
namespace {

constexpr size_t kSmall = size_t{64} << 10;  // not worth a file

int openFile() {
    const char* wanted = std::getenv("TMPDIR");
    // What is in /tmp may lie in memory.
    for (const char* folder : {wanted, "/var/tmp", "/tmp"})
        if (folder != nullptr)
            if (const int file = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); file >= 0) return file;
    return -1;
}

bool writeAll(int file, const std::byte* from, size_t bytes, int64_t offset) {
    while (bytes > 0) {
        const ssize_t done = ::pwrite(file, from, bytes, offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        from += done, bytes -= static_cast<size_t>(done), offset += done;
    }
    return true;
}

Result<void> readAll(int file, std::span<std::byte> into, int64_t offset) {
    while (!into.empty()) {
        const ssize_t done = ::pread(file, into.data(), into.size(), offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return Error{ErrorCode::ToolFailed, "a value that was put aside cannot be read back", {}, {}};
        into = into.subspan(static_cast<size_t>(done)), offset += done;
    }
    return {};
}

}  // namespace

Spill::~Spill() {
    if (m_file >= 0) ::close(m_file);
}

std::shared_ptr<Storage> Spill::fromFile(int64_t offset, size_t bytes) {
    auto atHand = std::make_shared<std::atomic<bool>>(false);
    auto storage = Storage::deferred(bytes, [file = m_file, offset, atHand](std::span<std::byte> into) {
        atHand->store(true);
        return readAll(file, into, offset);
    });
    m_places[storage.get()] = {storage, atHand, offset, bytes};
    return storage;
}

/// The same bytes, in the file; null if they cannot be written there.
std::shared_ptr<Storage> Spill::away(const std::shared_ptr<Storage>& storage) {
    if (const auto known = m_places.find(storage.get()); known != m_places.end()) {
        const Place place = known->second;
        // It shares the place of the one that it replaces, which is forgotten without giving the place back.
        m_places.erase(known);
        return fromFile(place.offset, place.bytes);
    }
    if (m_file < 0 && (m_file = openFile()) < 0) m_refused = true;
    if (m_refused) return nullptr;
    if (!writeAll(m_file, storage->data(), storage->size(), m_end)) {
        m_refused = true;
        return nullptr;
    }
    const int64_t offset = m_end;
    constexpr int64_t kBlock = 4096;
    m_end = (m_end + static_cast<int64_t>(storage->size()) + kBlock - 1) / kBlock * kBlock;
    m_written += static_cast<int64_t>(storage->size());
    return fromFile(offset, storage->size());
}

void Spill::forgetDead() {
    for (auto at = m_places.begin(); at != m_places.end();) {
        if (!at->second.storage.expired()) {
            ++at;
            continue;
        }
        static_cast<void>(::fallocate(m_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at->second.offset,
                                      static_cast<off_t>(at->second.bytes)));
        at = m_places.erase(at);
    }
}

void Spill::relieve(const std::vector<Interpreter*>& runs) {
    forgetDead();
    double held = 0;
    std::set<const Storage*> seen, soon;
    std::vector<std::pair<std::shared_ptr<Storage>, Interpreter*>> candidates;
    for (Interpreter* run : runs) {
        if (const Node* next = run->next())
            for (const Node* input : next->inputs())
                for (const Tensor& value : run->Interpreter::valueOf(*input))
                    if (value.defined()) soon.insert(value.storage().get());
        run->forEachHeld([&](const Tensor& value, bool written) {
            const auto& storage = value.storage();
            const auto known = m_places.find(storage.get());
            const bool inFile = known != m_places.end();
            if (inFile ? !known->second.atHand->load() : storage->readOnly()) return;
            if (!seen.insert(storage.get()).second) return;
            held += static_cast<double>(storage->size());
            if (storage->size() >= kSmall && !written) candidates.emplace_back(storage, run);
        });
    }
    for (const bool late : {false, true}) {
        for (auto& [storage, run] : candidates) {
            if (held <= m_limit) return;
            if (!storage || soon.contains(storage.get()) != late) continue;
            const auto moved = away(storage);
            if (!moved) return;
            held -= static_cast<double>(storage->size());
            run->forEachHeld([&, from = storage.get()](Tensor& value, bool) {
                if (value.storage().get() == from)
                    value =
                        Tensor(moved, value.dtype(), value.sizes(), value.strides(), value.offset(), value.device());
            });
            storage = nullptr;
        }
    }
}

}  // namespace cutaway
