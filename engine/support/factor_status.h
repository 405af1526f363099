#pragma once
// What a factorization's status means, in words: of linear algebra that checks its results.
#include <cstdint>
#include <string>
#include <string_view>

namespace ct {

/// `api`: who has factored, as in PyTorch ("linalg.inv"). `status`: LAPACK's, not 0. `batch`: which matrix of a batch;
/// negative if there is one only.
inline std::string factorStatusText(std::string_view api, int64_t status, int64_t batch) {
    const auto isOf = [&](std::string_view part) { return api.find(part) != std::string_view::npos; };
    const std::string number = std::to_string(status < 0 ? -status : status);
    std::string text(api);
    text += ": ";
    if (batch >= 0) text += "matrix " + std::to_string(batch) + " of the batch: ";
    if (status < 0) return text + "LAPACK refuses argument " + number;
    if (isOf("cholesky")) return text + "the leading minor of order " + number + " is not positive-definite";
    if (isOf("svd") || isOf("eig"))
        return text + "no convergence: the matrix is ill-conditioned, or too many of its values repeat (status " +
               number + ")";
    if (isOf("lstsq")) return text + "the matrix does not have full rank (status " + number + ")";
    return text + "diagonal element " + number + " is zero: the matrix is singular";
}

}  // namespace ct
