#include "engine/numerics/spill.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
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
        from += done;
        bytes -= static_cast<size_t>(done);
        offset += done;
    }
    return true;
}

Result<void> readAll(int file, std::span<std::byte> into, int64_t offset) {
    while (!into.empty()) {
        const ssize_t done = ::pread(file, into.data(), into.size(), offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return Error{ErrorCode::ToolFailed, "a value that was put aside cannot be read back", {}, {}};
        into = into.subspan(static_cast<size_t>(done));
        offset += done;
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
    if (const auto found = m_places.find(storage.get()); found != m_places.end()) {
        const Place place = found->second;
        // The new storage takes over the place in the file, so the entry goes without freeing the place.
        m_places.erase(found);
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

/// How many nodes from now a value is read; what only a comparison reads is read last.
size_t Spill::nextRead(const Interpreter& run, NodeId node) {
    std::vector<size_t>& order = m_order[&run];
    const Graph& graph = run.module().graph();
    if (order.empty()) {
        order.resize(graph.idLimit());
        size_t at = 0;
        for (const Node& each : graph.nodes()) order[index(each.id())] = at++;
    }
    size_t next = std::numeric_limits<size_t>::max();
    const Node* now = run.next();
    const Node* held = graph.find(node);
    if (now == nullptr || held == nullptr) return next;
    const size_t from = order[index(now->id())];
    for (const Node* user : held->users())
        if (const size_t at = order[index(user->id())]; at >= from && !user->isOutput())
            next = std::min(next, at - from);
    return next;
}

/// Calls visit(tensor, written, node, run) for what lies in memory of the runs' own.
template <class Visit>
void Spill::forEachOwn(const std::vector<Interpreter*>& runs, Visit&& visit) {
    for (Interpreter* run : runs)
        run->forEachHeld([&](const Tensor& value, bool written, NodeId node) {
            const auto found = m_places.find(value.storage().get());
            const bool inFile = found != m_places.end();
            if (inFile ? found->second.atHand->load() : !value.storage()->readOnly()) visit(value, written, node, *run);
        });
}

double Spill::bytesHeld(const std::vector<Interpreter*>& runs) {
    double bytes = 0;
    std::set<const Storage*> seen;
    forEachOwn(runs, [&](const Tensor& value, bool, NodeId, const Interpreter&) {
        if (seen.insert(value.storage().get()).second) bytes += static_cast<double>(value.storage()->size());
    });
    return bytes;
}

/// Each storage once, what is read latest first.
std::vector<Spill::ResidentStorage> Spill::latestFirst(const std::vector<Interpreter*>& runs) {
    std::vector<ResidentStorage> found;
    std::map<const Storage*, size_t> seen;
    forEachOwn(runs, [&](const Tensor& value, bool written, NodeId node, const Interpreter& run) {
        const auto [at, fresh] = seen.emplace(value.storage().get(), found.size());
        if (fresh) found.push_back({value.storage(), std::numeric_limits<size_t>::max(), false});
        ResidentStorage& entry = found[at->second];
        entry.written |= written;
        entry.nextRead = std::min(entry.nextRead, nextRead(run, node));
    });
    std::stable_sort(found.begin(), found.end(),
                     [](const ResidentStorage& a, const ResidentStorage& b) { return a.nextRead > b.nextRead; });
    return found;
}

/// What the allocator keeps of values that are gone goes back to the system.
void Spill::giveBack(double bytes) {
    constexpr double kLeast = 64.0 * (1 << 20);
    m_freed += std::max(0.0, m_held - bytes);
    m_held = bytes;
    if (m_freed < std::max(kLeast, m_limit / 8)) return;
    m_freed = 0;
#if defined(__GLIBC__)
    ::malloc_trim(0);
#endif
}

void Spill::relieve(const std::vector<Interpreter*>& runs) {
    forgetDead();
    double bytes = bytesHeld(runs);
    if (bytes > m_limit) {
        for (const ResidentStorage& value : latestFirst(runs)) {
            if (bytes <= m_limit) break;
            if (value.storage->size() < kSmall || value.written) continue;
            const auto moved = away(value.storage);
            if (!moved) break;
            bytes -= static_cast<double>(value.storage->size());
            for (Interpreter* run : runs)
                run->forEachHeld([&](Tensor& tensor, bool, NodeId) {
                    if (tensor.storage() == value.storage)
                        tensor = Tensor(moved, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset(),
                                        tensor.device());
                });
        }
    }
    giveBack(bytes);
}

}  // namespace cutaway
