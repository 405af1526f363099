#pragma once
// Where test data lies, the recorded results that may or may not be beside the checkout, and what was built.
#include <QString>

namespace cutaway::testing {

/// A file under tests/.
QString testFile(const QString& relative);
/// All of a file; nothing if it cannot be read.
QByteArray contentOf(const QString& path);
/// The folder `shared` beside the checkout, or empty. Tests that need it call QSKIP with kNoReference.
QString sharedFolder();
/// A folder of recorded results (shared/reference/...), or empty.
QString referenceFolder(const QString& relative);
/// A program of this build, "cutaway-cli": it lies where this one stands to it, wherever the build folder is.
QString builtProgram(const QString& name);
/// How this build was configured. Tests compile alike whatever it is, and share what is precompiled.
struct Build {
    QString folder, version;
    QString cmake;  // the program
    bool windows = false, sharedEngine = false;
};
Build build();
constexpr const char* kNoReference = "shared/reference is not beside this checkout";

}  // namespace cutaway::testing
