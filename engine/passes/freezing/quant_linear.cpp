#include "engine/passes/freezing/quant_linear.h"

#include "engine/passes/freezing/quant_operands.h"

namespace cutaway {
namespace {

bool isCallOf(const Node* node, std::string_view op) { return node != nullptr && node->isCall(op); }
bool readOnceByLinear(const Node& node, const Refusing& no) {
    return node.users().size() == 1 || no.about(&node, node, " has ", Counted{node.users().size(), "reader"});
}
/// Whether the result has the input's leading dims and `columns` as its last, so that no reshape moves rows.
bool keepsPositions(const SymDims& input, const SymDims& result, const SymInt& columns) {
    if (input.size() != result.size() || !(result.back() == columns)) return false;
    for (size_t i = 0; i + 1 < input.size(); ++i)
        if (!(input[i] == result[i])) return false;
    return true;
}
bool isVector(const Node* node, const SymInt& columns) {
    return node != nullptr && node->type().tensor() && node->tensor().rank() == 1 && node->tensor().sizes[0] == columns;
}

bool readTransposed(Node* node, LinearForm& found, const Refusing& no) {
    if (!isCallOf(node, "aten.permute.default"))
        return no.about(node, "its second factor, ", NodeWithKind{node}, ", is not a transposed weight");
    if (!readOnceByLinear(*node, no)) return false;
    found.weight = node->arg(0).node();
    const auto* dims = node->arg("dims").list();
    const bool swaps = dims && dims->size() == 2 && (*dims)[0].asInt() == 1 && (*dims)[1].asInt() == 0;
    return swaps || no.about(node, node, " does not swap the two dims of a matrix");
}

bool readMatrixProduct(Node& product, bool parity, LinearForm& found, const Refusing& no) {
    const bool adds = product.isCall("aten.addmm.default");
    Node* first = product.arg(adds ? 1 : 0).node();
    if (!readTransposed(product.arg(adds ? 2 : 1).node(), found, no)) return false;
    const SymInt columns = product.tensor().sizes[1];
    if (adds && !parity)
        for (const std::string_view factor : {"beta", "alpha"})
            if (product.arg(factor).asReal() != 1.0) return no("it is scaled: ", factor, " is ", product.arg(factor));
    if (adds) {
        found.bias = product.arg(0).node();
        if (!isVector(found.bias, columns))
            return no("what it adds, ", found.bias->tensor(), ", is not one number for each column");
    }
    found.input = first;
    found.result = &product;
    if (!isCallOf(first, "aten.reshape.default")) return true;
    if (!readOnceByLinear(*first, no)) return false;
    found.input = first->arg(0).node();
    found.result = onlyUser(product);
    if (!isCallOf(found.result, "aten.reshape.default"))
        return no("its input is reshaped by ", first, ", but its result is not reshaped back");
    if (!keepsPositions(found.input->tensor().sizes, found.result->tensor().sizes, columns) ||
        !(first->tensor().sizes.back() == found.input->tensor().sizes.back()))
        return no(found.result, " does not give the result the dims of ", found.input);
    return true;
}

bool readBatchProduct(Node& product, LinearForm& found, const Refusing& no) {
    Node *first = product.arg(0).node(), *second = product.arg(1).node();
    for (Node* factor : {first, second}) {
        if (!isCallOf(factor, "aten.expand.default"))
            return no.about(factor, "its factor, ", NodeWithKind{factor}, ", is not expanded");
        if (!readOnceByLinear(*factor, no)) return false;
    }
    if (!readTransposed(second->arg(0).node(), found, no)) return false;
    found.input = first->arg(0).node();
    const SymDims& sizes = found.input->tensor().sizes;
    if (!(sizes == first->tensor().sizes)) return no.about(first, first, " repeats its input");
    const SymDims& weight = found.weight->tensor().sizes;
    if (weight.size() != 2 || sizes.size() != 3 || !(second->tensor().sizes == SymDims{sizes[0], weight[1], weight[0]}))
        return no.about(second, second, " does not repeat one matrix for each item of the batch");
    found.result = &product;
    Node* reader = onlyUser(product);
    if (!isCallOf(reader, "aten.add.Tensor") || reader->arg("alpha").asReal() != 1.0) return true;
    Node* other = reader->arg(reader->arg(0).node() == &product ? 1 : 0).node();
    const bool biased = isVector(other, weight[0]) && isFloating(other->tensor().dtype) &&
                        reader->tensor().dtype == product.tensor().dtype;
    if (!biased || !(reader->tensor().sizes == product.tensor().sizes)) return true;
    found.bias = other;
    found.result = reader;
    return true;
}

}  // namespace

bool isProduct(const Node& node) {
    return node.isCall("aten.mm.default") || node.isCall("aten.addmm.default") || node.isCall("aten.bmm.default");
}

bool readLinearForm(Node& product, bool parity, LinearForm& found, const Refusing& no) {
    return product.isCall("aten.bmm.default") ? readBatchProduct(product, found, no)
                                              : readMatrixProduct(product, parity, found, no);
}

}  // namespace cutaway
