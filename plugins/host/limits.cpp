#include "plugins/host/limits.h"

#include <linux/audit.h>
#include <linux/filter.h>
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
