// operator new of all programs. A failed one throws, with its size: allocators written in C, whose operator new the
// linker would take otherwise, end the program instead.
#include <cstdlib>
#include <new>

#include "engine/support/out_of_memory.h"

namespace {

void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }
void* allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
    const auto unit = static_cast<std::size_t>(alignment);
    const std::size_t rounded = (bytes + unit - 1) / unit * unit;
    return rounded < bytes ? nullptr : std::aligned_alloc(unit, rounded == 0 ? unit : rounded);
}
void* orThrow(void* memory, std::size_t bytes) {
    if (memory == nullptr) throw cutaway::OutOfMemory(bytes);
    return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return orThrow(allocate(bytes), bytes); }
void* operator new[](std::size_t bytes) { return orThrow(allocate(bytes), bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return orThrow(allocate(bytes, alignment), bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return orThrow(allocate(bytes, alignment), bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return allocate(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return allocate(bytes, alignment);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }
