#pragma once
// A second process, forked by beginProgram(), that watches a socket to the program. When the program is gone, however
// it went, the guard kills the process groups that the program had started and removes its temporary folders. Where
// there is no guard (a program that did not call beginProgram), all of this does nothing and says yes.
#include <sys/types.h>

#include <filesystem>

namespace cutaway {

/// Tell the guard before the group starts anything, before the folder exists. False: the program is ending, and nothing
/// new may begin. Callable between fork and exec.
bool guardGroup(pid_t group);
void releaseGroup(pid_t group);
bool guardFolder(const std::filesystem::path& path);
void releaseFolder(const std::filesystem::path& path);

}  // namespace cutaway
