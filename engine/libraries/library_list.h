#ifndef CUTAWAY_LIBRARY_LIST_H
#define CUTAWAY_LIBRARY_LIST_H
/* The libraries, a row each: what rows of calls name it by; its function, which returns its CtLibrary; its name; its
   device; what it is linked with (LinkedWith); the function that says the version of what is behind it, nullptr where
   it is our own; beginnings of the paths, under engine, of the sources that only programs that call it carry. Nothing
   else lists libraries. Exported programs carry this file.
   - oneDNN: products, convolutions and their gradients
   - oneDNN int8: quantized layers; those that oneDNN refuses are portable functions
   - copies: concatenations
   - attention: our own; its rows are converted as portable functions convert theirs
   - LAPACK: linear algebra, called as portable functions are
   - portable: operators as plain C++, the slowest, for every dtype
   - cuBLASLt, cuDNN: products and convolutions on NVIDIA GPUs, loaded at run time
   - GPU functions: scans, sorts, scatters and copies in place, by CUDA kernels of our own */
// clang-format off
#define CUTAWAY_LIBRARIES(row)                                                                                     \
    row(kOneDnn, oneDnnLibrary, "oneDNN", Cpu, OneDnn, oneDnnVersion, "runtime/libraries/onednn")                  \
    row(kOneDnnBytes, oneDnnBytesLibrary, "oneDNN int8", Cpu, OneDnn, oneDnnVersion, "runtime/libraries/onednn",   \
        "runtime/libraries/quantized", "runtime/libraries/portable", "runtime/portable/")                          \
    row(kCopies, copiesLibrary, "copies", Cpu, Nothing, nullptr, "runtime/libraries/copies")                       \
    row(kAttention, attentionLibrary, "attention", Cpu, OneDnn, nullptr, "runtime/libraries/attention",            \
        "runtime/portable/elements")                                                                               \
    row(kLapack, lapackLibrary, "LAPACK", Cpu, Lapack, nullptr, "runtime/libraries/lapack",                        \
        "runtime/libraries/portable", "runtime/portable/", "support/dense_")                                       \
    row(kPortable, portableLibrary, "portable", Cpu, Nothing, nullptr, "runtime/libraries/portable",               \
        "runtime/portable/")                                                                                       \
    row(kCublasLt, cublasLtLibrary, "cuBLASLt", Cuda, Nothing, nullptr, "runtime/cuda/cublaslt")                   \
    row(kCudnn, cudnnLibrary, "cuDNN", Cuda, Nothing, nullptr, "runtime/cuda/cudnn")                               \
    row(kGpuFunctions, gpuFunctionsLibrary, "GPU functions", Cuda, Nothing, nullptr, "runtime/cuda/functions")
// clang-format on
#endif
