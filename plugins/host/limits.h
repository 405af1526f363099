#pragma once
// Keeps a plugin's process from starting others, from ending those that it has not started, and from writing elsewhere.

extern "C" {

/// From now on fork, vfork, clone without threads, exec, signals to other processes, and leaving the process's group
/// fail with EPERM in this process, for good. False where the system cannot do that.
__attribute__((visibility("default"))) bool cutaway_refuse_processes();
}

/// From now on files are made, changed and removed in the working folder alone, by this process and those that it
/// becomes (Landlock). False where the kernel cannot do that (before 5.13, or switched off); then nothing has changed.
bool keepWritesInFolder();
