#pragma once
// The models that tests of whole programs use: bundled ones, those of the checkout, and the recorded ones beside it.
#include <QStringList>

namespace cutaway::testing {

/// Paths of .pt2 files, each model once.
QStringList modelFiles();
/// "resnet_mini".
QString modelName(const QString& file);

}  // namespace cutaway::testing
