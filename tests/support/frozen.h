#pragma once
// What tests of freezing share: a graph with something to fold, and files beside it.
#include <QTemporaryDir>
#include <string>

#include "engine/tensor/tensor.h"

namespace cutaway::testing {

/// A convolution and its batch norm, with parameters that say so.
extern const char* const kNormed;

/// Over all elements.
double largestMagnitude(const Tensor& tensor);
/// The path of a file with this text in the folder; ends the test if it cannot be written.
std::string written(const QTemporaryDir& folder, const char* name, const std::string& text);

}  // namespace cutaway::testing
