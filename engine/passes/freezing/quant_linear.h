#pragma once
#include "engine/rewrite/refusing.h"

namespace cutaway {

/// The calls that are left of a linear layer x w^T + bias: mm or addmm of x and a transposed weight, with reshapes
/// around them where x has more than two dims; or bmm of both, expanded, and an addition (spec: QO §5.3).
struct LinearForm {
    Node* input = nullptr;   // x, before it is reshaped or expanded
    Node* weight = nullptr;  // w, before it is transposed
    Node* bias = nullptr;    // a vector; null for none
    Node* result = nullptr;  // the last of the calls
};

/// mm, addmm or bmm.
bool isProduct(const Node& node);

/// Says why the product is none. What stands between the calls must have one reader. PyTorch looks neither at alpha and
/// beta nor at the bias (parity).
bool readLinearForm(Node& product, bool parity, LinearForm& found, const Refusing& no);

}  // namespace cutaway
