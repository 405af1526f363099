#include "engine/ops/library_kernels.h"

#include <utility>

namespace cutaway {
namespace {
thread_local bool without = false;
}

WithoutLibraryKernels::WithoutLibraryKernels(bool own) : m_before(std::exchange(without, own || without)) {}
WithoutLibraryKernels::~WithoutLibraryKernels() { without = m_before; }
bool withoutLibraryKernels() { return without; }

}  // namespace cutaway
