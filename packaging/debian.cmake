# Run by cpack once the tree is laid out: makes its documents what Debian's policy asks for.
set(documents ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc/${CPACK_PACKAGE_NAME})

# SOURCE_DATE_EPOCH, where it is set, is the date: the same sources then make the same package.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${documents}/changelog "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What each version changes stands in CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
execute_process(COMMAND gzip -9nf ${documents}/changelog COMMAND_ERROR_IS_FATAL ANY)

# LICENSE, in the form that Debian's tools read, in its place.
file(READ ${documents}/LICENSE text)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]+)" found "${text}")
set(holder ${CMAKE_MATCH_1})
string(REGEX MATCH "Permission is hereby.*" text "${text}")
string(STRIP "${text}" text)
string(REPLACE "\n\n" "\n.\n" text "${text}")
string(REPLACE "\n" "\n " text "${text}")
file(WRITE ${documents}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Cutaway

Files: *
Copyright: ${holder}
License: Expat

License: Expat
 ${text}
")
file(REMOVE ${documents}/LICENSE)
file(CHMOD ${documents}/copyright ${documents}/changelog.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
