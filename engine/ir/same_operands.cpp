#include "engine/ir/same_operands.h"

#include <algorithm>

#include "engine/ir/verify.h"

namespace cutaway {

bool sameWholly(const ValueType& a, const ValueType& b) {
    if (&a == &b) return true;
    if (a.isOpaque() || !sameMemory(a, b)) return false;
    if (const TensorType* one = a.tensor(), *other = b.tensor(); one != nullptr)
        return one->layout == other->layout && one->requiresGrad == other->requiresGrad &&
               one->assumed == other->assumed;
    const TupleType *one = a.tuple(), *other = b.tuple();
    for (size_t i = 0; one && i < one->size(); ++i)
        if (!sameWholly((*one)[i], (*other)[i])) return false;
    return true;
}

namespace {

bool sameOperand(const Argument& a, const Argument& b) {
    const Node *one = a.node(), *other = b.node();
    if (one != nullptr && other != nullptr) return sameWholly(one->type(), other->type());
    const auto *list = a.list(), *otherList = b.list();
    if (list != nullptr && otherList != nullptr)
        return std::equal(list->begin(), list->end(), otherList->begin(), otherList->end(), sameOperand);
    return equal(a, b);
}

}  // namespace

bool sameOperands(std::span<const Argument> a, std::span<const Argument> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), sameOperand);
}

}  // namespace cutaway
