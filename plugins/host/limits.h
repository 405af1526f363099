#pragma once
// Keeps a plugin's process from starting others.

extern "C" {

/// From now on fork, vfork, clone without threads, and exec fail with EPERM in this process, for good. False where the
/// system cannot do that.
__attribute__((visibility("default"))) bool cutaway_refuse_processes();
}
