#include "plugins/host/limits.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

bool cutaway_refuse_processes() {
#if defined(__x86_64__)
    constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#else
    return true;  // the group is killed after the call, which is all that can be done
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    const auto load = [](size_t offset) {
        return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<unsigned>(offset)};
    };
    const auto ends = [](unsigned value) { return sock_filter{BPF_RET | BPF_K, 0, 0, value}; };
    /// Goes on with the next instruction if equal, else skips it.
    const auto equal = [](unsigned value) { return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value}; };
    const unsigned refused = SECCOMP_RET_ERRNO | EPERM;
    std::vector<sock_filter> filter = {
        load(offsetof(seccomp_data, arch)),
        sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kMachine},
        ends(SECCOMP_RET_KILL_PROCESS),
        load(offsetof(seccomp_data, nr)),
    };
#if defined(__x86_64__)
    // The calls of the x32 form have numbers of their own.
    filter.push_back(sock_filter{BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000u});
    filter.push_back(ends(refused));
    for (const unsigned call : {SYS_fork, SYS_vfork}) {
        filter.push_back(equal(call));
        filter.push_back(ends(refused));
    }
#endif
    for (const unsigned call : {SYS_execve, SYS_execveat}) {
        filter.push_back(equal(call));
        filter.push_back(ends(refused));
    }
    // A plugin whose fork has failed may kill the process -1, which is every process of this user. Another process's
    // group would keep it alive when its own is killed.
    for (const unsigned call :
         {SYS_setpgid, SYS_setsid, SYS_tkill, SYS_ptrace, SYS_process_vm_writev, SYS_pidfd_send_signal}) {
        filter.push_back(equal(call));
        filter.push_back(ends(refused));
    }
    const auto own = static_cast<unsigned>(::getpid());
    for (const unsigned call : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo}) {
        filter.push_back(sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call});
        filter.push_back(load(offsetof(seccomp_data, args)));
        filter.push_back(sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, own});
        filter.push_back(ends(refused));
        filter.push_back(ends(SECCOMP_RET_ALLOW));
    }
    // What it is given lies in memory, where no filter can look: the C library then takes clone.
    filter.push_back(equal(SYS_clone3));
    filter.push_back(ends(SECCOMP_RET_ERRNO | ENOSYS));
    filter.push_back(sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_clone});
    filter.push_back(load(offsetof(seccomp_data, args)));
    filter.push_back(sock_filter{BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD});
    filter.push_back(ends(refused));
    filter.push_back(ends(SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#endif
}

bool keepWritesInFolder() {
#ifdef SYS_landlock_create_ruleset
    constexpr unsigned long long kTruncate = 1ull << 14;  // known from version 3 of the interface on
    const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return false;
    landlock_ruleset_attr all{};
    all.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                            LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
                            (version >= 3 ? kTruncate : 0);
    const int rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, sizeof all.handled_access_fs, 0));
    if (rules < 0) return false;
    const auto allow = [&](const char* path, unsigned long long what) {
        landlock_path_beneath_attr beneath{};
        beneath.allowed_access = what;
        beneath.parent_fd = ::open(path, O_PATH | O_CLOEXEC);
        const bool done = beneath.parent_fd >= 0 &&
                          ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
        if (beneath.parent_fd >= 0) ::close(beneath.parent_fd);
        return done;
    };
    // Devices that take anything, and threads of libraries that ask for their own names.
    allow("/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE | (version >= 3 ? kTruncate : 0));
    allow("/proc/self/task", LANDLOCK_ACCESS_FS_WRITE_FILE);
    const bool kept = allow(".", all.handled_access_fs) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                      ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    ::close(rules);
    return kept;
#else
    return false;
#endif
}
