// The process that a plugin lives in: `cutaway-plugin-host FILE MEMORY FILESIZE PROCESSES` sets the limits, then loads
// the plugin and answers requests on its standard input and output. Started by Cutaway.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugins/host/limits.h"
#include "plugins/host/serve.h"

namespace fs = std::filesystem;

namespace {

void limit(decltype(RLIMIT_AS) what, rlim_t value) {
    const rlimit both{value, value};
    ::setrlimit(what, &both);
}

rlim_t addressSpaceNow() {
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// Processes of the user, each thread counted, as RLIMIT_NPROC has it.
rlim_t tasksOfUser() {
    rlim_t tasks = 0;
    std::error_code error;
    for (fs::directory_iterator at("/proc", error), last; !error && at != last; at.increment(error)) {
        struct stat facts {};
        if (::stat(at->path().c_str(), &facts) != 0 || facts.st_uid != ::getuid()) continue;
        std::error_code gone;
        for (fs::directory_iterator task(at->path() / "task", gone), end; !gone && task != end; task.increment(gone))
            ++tasks;
    }
    return tasks;
}

bool endsWith(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Where what belongs to this program lies: beside it.
std::string beside(const char* name) {
    char path[PATH_MAX] = {};
    if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0) return name;
    const std::string program = path;
    return program.substr(0, program.rfind('/') + 1) + name;
}

/// Answers every request with why there is no plugin.
int refuse(const std::string& why, int output) {
    std::string bytes;
    const auto number = [&](uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
    number(3 * sizeof(uint64_t) + std::strlen("failed") + why.size());
    number(2);
    for (const std::string& text : {std::string("failed"), why}) {
        number(text.size());
        bytes += text;
    }
    return ::write(output, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr,
                     "usage: cutaway-plugin-host FILE MEMORY FILESIZE PROCESSES\n"
                     "Started by cutaway; runs a plugin in a process of its own.\n");
        return 2;
    }
    const std::string file = argv[1];
    const rlim_t memory = std::strtoull(argv[2], nullptr, 10), fileSize = std::strtoull(argv[3], nullptr, 10);
    const unsigned long processes = std::strtoul(argv[4], nullptr, 10);
    // What the plugin prints is not to be taken for its answers.
    const int input = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, fileSize);
    ::signal(SIGXFSZ, SIG_DFL);  // which Cutaway's programs ignore
    if (processes > 0) {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what it leaves is found, and ended with it
        // Cutaway counts them, too: the system lets those of root be.
        limit(RLIMIT_NPROC, tasksOfUser() + processes);
    }
    // Where the kernel has no such thing, each file's size is limited, as ever.
    if (processes == 0) static_cast<void>(keepWritesInFolder());
    const bool python = endsWith(file, ".py");
    if (python) {
        ::fcntl(input, F_SETFD, 0);
        ::fcntl(output, F_SETFD, 0);
        const std::string module = beside("cutaway_plugin.py"), library = beside("libcutaway-plugin.so");
        const std::string in = std::to_string(input), out = std::to_string(output), most = std::to_string(processes);
        if (memory > 0) limit(RLIMIT_AS, memory + (rlim_t{256} << 20));  // Python's own
        ::execlp("python3", "python3", "-I", module.c_str(), file.c_str(), library.c_str(), in.c_str(), out.c_str(),
                 most.c_str(), static_cast<char*>(nullptr));
        return refuse("python3 cannot be started, which plugins in Python need", output);
    }
    if (memory > 0) limit(RLIMIT_AS, addressSpaceNow() + memory);
    if (processes == 0 && !cutaway_refuse_processes())
        return refuse("the system does not let this program keep plugins from starting processes", output);
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return refuse(std::string("it cannot be loaded: ") + ::dlerror(), output);
    using Function = const ct_plugin* (*)();
    const auto function = reinterpret_cast<Function>(::dlsym(library, "cutaway_plugin"));
    if (function == nullptr) return refuse("it exports no function cutaway_plugin", output);
    return cutaway_serve_plugin(function(), input, output);
}
