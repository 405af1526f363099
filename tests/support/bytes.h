#pragma once
// Small conversions between test data and what readers take.
#include <QString>
#include <memory>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/tensor/tensor.h"

namespace cutaway::testing {

/// The bytes as a storage of exactly that size, so that a sanitizer sees every read past the end.
std::shared_ptr<Storage> storageOf(const std::string& bytes);

/// The numbers in a row of that dtype.
Tensor rowOf(DType dtype, const std::vector<double>& numbers);
inline double itemOf(const Tensor& tensor, int64_t at = 0) { return toDouble(tensor.item(at)); }

/// "" for success, else the error's text on one line.
template <class T>
QString failureOf(const Result<T>& result) {
    return result ? QString() : QString::fromStdString(result.error().text()).simplified();
}

}  // namespace cutaway::testing
