#include "engine/support/process_tree.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace cutaway {
namespace {

/// What starts others meanwhile is met again; one that starts them without end, so often at most.
constexpr int kMostRounds = 100;

std::string placeOf(int process) { return "/proc/" + std::to_string(process); }

bool isDead(int process) {
    std::ifstream file(placeOf(process) + "/stat");
    std::string text;
    std::getline(file, text);
    const size_t end = text.rfind(')');
    return end == std::string::npos || end + 2 >= text.size() || text[end + 2] == 'Z' || text[end + 2] == 'X';
}

/// Each thread has children of its own.
template <class Visit>
void forEachChild(int process, Visit&& visit) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(placeOf(process) + "/task", error), last; !error && at != last;
         at.increment(error)) {
        std::ifstream file(at->path() / "children");
        for (int child = 0; file >> child;) visit(child);
    }
}
template <class Visit>
void forEachBelow(int process, Visit&& visit) {
    forEachChild(process, [&](int child) {
        visit(child);
        forEachBelow(child, visit);
    });
}

/// True if one was alive.
bool endBelow(int process) {
    bool found = false;
    forEachChild(process, [&](int child) {
        if (isDead(child)) return;
        found = true;
        ::kill(child, SIGSTOP);  // it starts nothing more while its own are looked for
        endBelow(child);
        ::kill(child, SIGKILL);
    });
    return found;
}

int64_t writtenBy(int process) {
    std::ifstream file(placeOf(process) + "/io");
    int64_t calls = 0, disk = 0, value = 0;
    for (std::string key; file >> key >> value;) {
        if (key == "wchar:") calls = value;
        if (key == "write_bytes:") disk = value;  // of memory that is mapped, too
    }
    return std::max(calls, disk);
}

}  // namespace

int64_t ProcessTree::writtenBytes() const {
    int64_t bytes = writtenBy(m_process);
    forEachBelow(m_process, [&](int process) { bytes += writtenBy(process); });
    return bytes;
}

int ProcessTree::others() const {
    int count = 0;
    forEachBelow(m_process, [&](int process) { count += !isDead(process); });
    return count;
}

void ProcessTree::stop() const {
    ::kill(m_process, SIGSTOP);
    int before = -1, now = 0;
    for (int round = 0; round < kMostRounds && before != now; ++round) {
        before = now;
        now = 0;
        forEachBelow(m_process, [&](int process) {
            ::kill(process, SIGSTOP);
            ++now;
        });
    }
}
void ProcessTree::goOn() const {
    forEachBelow(m_process, [](int process) { ::kill(process, SIGCONT); });
    ::kill(m_process, SIGCONT);
}

/// What one of them left when it was ended comes to the process itself, and is found the next time.
void ProcessTree::endOthers() const {
    for (int round = 0; round < kMostRounds && endBelow(m_process); ++round) {
    }
}

}  // namespace cutaway
