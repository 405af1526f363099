# What `cpack` makes of the install rules (app/CMakeLists.txt): a package for Debian. packaging/package.sh calls it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cutaway)
set(CPACK_PACKAGE_VENDOR "The Cutaway authors")
set(CPACK_PACKAGE_CONTACT "The Cutaway authors <maintainers@cutaway.invalid>")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0) # one for each core
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "interactive debugger for graph compilers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Cutaway holds a complete compiler for PyTorch graphs that behaves like
TorchInductor, and opens it while it works: step through every pass and
every single rewrite, see before and after as one coloured graph beside the
text, ask any node where it came from, compile the result, run it, time it
and check it.

This package holds the desktop program cutaway and the command line program
cutaway-cli.")

# What the programs are linked with, by the versions that their symbols need. Kernels are compiled while they run: by the
# first of c++, g++ and clang++, of which g++ brings the first two (engine/runtime/cpu/compiler.cpp).
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# LAPACK comes of several packages, which SHLIBDEPS allows; the first of these is some ten times as fast as the plain one.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++ (>= 4:12) | clang (>= 1:14), libopenblas0-serial | liblapack.so.3")
# An exported folder can be built again from its sources, with these; plugins in Python need it.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, libdnnl-dev, libopenblas-serial-dev, python3")

set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
include(CPack)
