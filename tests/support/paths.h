#pragma once
// Where test data lies, and the recorded results that may or may not be beside the checkout.
#include <QString>

namespace cutaway::testing {

/// A file under tests/.
QString testFile(const QString& relative);
/// The folder `shared` beside the checkout, or empty. Tests that need it call QSKIP with kNoReference.
QString sharedFolder();
/// A folder of recorded results (shared/reference/...), or empty.
QString referenceFolder(const QString& relative);
constexpr const char* kNoReference = "shared/reference is not beside this checkout";

}  // namespace cutaway::testing
