#pragma once
// Keeps a plugin's process from starting others, and from ending those that it has not started.

extern "C" {

/// From now on fork, vfork, clone without threads, exec, signals to other processes, and leaving the process's group
/// fail with EPERM in this process, for good. False where the system cannot do that.
__attribute__((visibility("default"))) bool cutaway_refuse_processes();
}
