#pragma once
// cutaway-cli as a shell runs it.
#include <QByteArray>
#include <QString>
#include <QStringList>

namespace cutaway::testing {

struct Ended {
    int status = 0;  // as a shell reports it
    QByteArray out, err;
};
/// Runs a command line of the shell in the folder; "cutaway-cli" in it is the built one.
Ended runShell(const QString& folder, QString line);
/// What starts a command line with mounts of its own in front of it: as root, else as root of a user namespace (a
/// chroot has none). Empty where neither is allowed.
QStringList ownMounts();

/// A file of a rule that changes what is computed.
constexpr const char* kWrongRule = R"(rule wrong
  why it shows what bisect finds
  find
    s = aten.cos.default(x)
    return s
  replace
    s = aten.sin.default(x)
    return s
)";

}  // namespace cutaway::testing
