// Batching rules of views and of what copies elements as views do. Dims count from the example's, so they move by one.
#include <algorithm>

#include "engine/passes/vmap/batch_rules.h"

namespace cutaway {
namespace {

/// The same operator on all examples, which it takes as more leading dims.
Values onAllExamples(BatchedCall& c) {
    std::vector<Argument> args = c.copyOfArgs();
    for (size_t i = 0; i < args.size(); ++i)
        if (c.isTensor(i)) args[i] = c.all(i);
    return c.again(std::move(args));
}

/// The same, where an example without dims is not an example of a smaller operand.
Values onAllWithDims(BatchedCall& c) { return c.type(0).rank() == 0 ? Values::notHandled() : onAllExamples(c); }

Values reshapeAll(BatchedCall& c) { return reshape(c.all(0), c.sizes(c.node().tensor().sizes)); }

Values expandAll(BatchedCall& c) {
    const SymDims sizes = c.node().tensor().sizes;
    return expand(withRank(c.all(0), static_cast<int64_t>(sizes.size())), c.sizes(sizes));
}

Values repeatAll(BatchedCall& c) {
    const auto* counts = c.arg(1).list();
    if (counts == nullptr) return Values::notHandled();
    std::vector<Argument> args = c.copyOfArgs();
    args[0] = withRank(c.all(0), static_cast<int64_t>(counts->size()));
    std::vector<Argument> all{Argument(1)};
    all.insert(all.end(), counts->begin(), counts->end());
    args[1] = Argument(std::move(all));
    return c.again(std::move(args));
}

Values transposeAll(BatchedCall& c) {
    const Value all = c.all(0);
    return c.type(0).rank() == 2 ? c.call("aten.transpose.int", {all, 1, 2}) : unary("aten.alias.default", all);
}

/// The new tensor depends on no element of the operand, so examples share it.
Values sharedFactory(BatchedCall& c) {
    std::vector<Argument> args = c.copyOfArgs();
    args[0] = c.all(0);
    const Value made = c.builder().callBound(c.op(), std::move(args));
    return made ? expand(unsqueeze(made, 0), c.sizes(made.sizes())) : made;
}

/// Dims that are parameters of these names move by one; all tensors get their examples.
Values alongDims(BatchedCall& c) {
    const bool list = c.arg(0).list() != nullptr;
    const Argument& first = list ? (*c.arg(0).list())[0] : c.arg(0);
    if (first.node() == nullptr) return Values::notHandled();
    int64_t rank = first.node()->tensor().rank();
    const bool adds =
        c.op().packet() == "aten.unsqueeze" || c.op().packet() == "aten.stack" || c.op().packet() == "aten.diag_embed";
    if (rank == 0 && !adds) return Values::notHandled();
    if (list)
        for (const Argument& item : *c.arg(0).list())
            if (item.node() == nullptr || item.node()->tensor().rank() != rank) return Values::notHandled();
    if (adds) ++rank;
    std::vector<Argument> args = c.copyOfArgs();
    const auto moved = [&](const Argument& dim) -> std::optional<int64_t> {
        const auto value = dim.asInt();
        if (!value) return std::nullopt;
        return (*value < 0 ? *value + rank : *value) + 1;
    };
    for (size_t i = 0; i < args.size(); ++i) {
        const std::string& name = c.op().schema()->params[i].name;
        if (name != "dim" && name != "dims" && name != "dim0" && name != "dim1" && name != "dim2" &&
            name != "dimension")
            continue;
        if (const auto* dims = args[i].list()) {
            std::vector<Argument> out;
            if (c.op().packet() == "aten.permute") out.emplace_back(0);
            for (const Argument& dim : *dims) {
                const auto to = moved(dim);
                if (!to) return Values::notHandled();
                out.emplace_back(*to);
            }
            if (dims->empty() && c.op().packet() != "aten.permute") return Values::notHandled();
            args[i] = Argument(std::move(out));
        } else if (const auto to = moved(args[i])) args[i] = *to;
        else return Values::notHandled();
    }
    for (size_t i = 0; i < args.size(); ++i) {
        if (c.isTensor(i)) args[i] = c.all(i);
        else if (c.op().schema()->params[i].kind == ParamKind::Tensor && args[i].list()) {
            std::vector<Argument> items;
            for (const Argument& item : *args[i].list()) items.emplace_back(c.all(item));
            args[i] = Argument(std::move(items));
        }
    }
    return c.again(std::move(args));
}

/// Operands that index along a dim beside the first one have its rank.
Values alongDimsTogether(BatchedCall& c) {
    for (size_t i = 1; i < c.arguments(); ++i)
        if (c.isTensor(i) && c.type(i).rank() != c.type(0).rank()) return Values::notHandled();
    return alongDims(c);
}

/// The index is shared by all examples.
Values alongSharedIndex(BatchedCall& c) {
    const int index = c.op().schema()->find("index");
    if (c.isBatched(static_cast<size_t>(index))) return Values::notHandled();
    for (size_t i = 0; i < c.arguments(); ++i)
        if (c.isTensor(i) && static_cast<int>(i) != index && c.type(i).rank() != c.type(0).rank())
            return Values::notHandled();
    const Values moved = alongDims(c);
    if (!moved.handled() || !moved.values()[0]) return moved;
    Node& made = *moved.values()[0].node();
    made.graph().setArg(made, static_cast<size_t>(index), c.arg(static_cast<size_t>(index)));
    return moved;
}

/// Of examples that lie dense, one behind the other: what is read begins with each of them.
Values readAll(BatchedCall& c) {
    const InferContext& one = c;
    const auto sizes = one.sizes("size"), strides = one.sizes("stride");
    const bool begins = c.arg(3).isNone() || c.arg(3).asInt() == 0;
    if (!sizes || !strides || !begins || !c.type(0).isContiguous()) return Values::notHandled();
    SymInt elements = 1, reach = 1;
    for (const SymInt& size : c.type(0).sizes) elements = elements * size;
    for (size_t d = 0; d < sizes->size(); ++d) reach = reach + ((*sizes)[d] - 1) * (*strides)[d];
    if (exceeds(reach, elements)) return Values::notHandled();
    Value all = c.all(0);
    if (!all.type().isContiguous())
        all = c.call("aten.clone.default", {all}, {{"memory_format", MemoryFormat::Contiguous}});
    SymDims steps = *strides;
    steps.insert(steps.begin(), elements);
    return c.call("aten.as_strided.default", {all, Argument(c.sizes(*sizes)), Argument(steps)});
}

constexpr BatchRow kViews[] = {
    {"aten.as_strided.default", readAll},
    {"aten.as_strided_copy.default", readAll},
    {"aten.alias.default", onAllExamples},
    {"aten.detach.default", onAllExamples},
    {"aten.lift_fresh_copy.default", onAllExamples},
    {"aten.view_as_real.default", onAllExamples},
    {"aten.view_as_complex.default", onAllExamples},
    {"aten._conj.default", onAllExamples},
    {"aten.view.dtype", onAllWithDims},
    {"aten.triu.default", onAllWithDims},
    {"aten.tril.default", onAllWithDims},
    {"aten.constant_pad_nd.default", onAllWithDims},
    {"aten.matrix_exp.default", onAllExamples},
    {"aten.linalg_cholesky_ex.default", onAllExamples},
    {"aten.linalg_inv_ex.default", onAllExamples},
    {"aten.linalg_qr.default", onAllExamples},
    {"aten._linalg_svd.default", onAllExamples},
    {"aten._linalg_eigh.default", onAllExamples},
    {"aten._linalg_det.default", onAllExamples},
    {"aten._linalg_slogdet.default", onAllExamples},
    {"aten.linalg_lu_factor_ex.default", onAllExamples},
    {"aten.view.default", reshapeAll},
    {"aten._unsafe_view.default", reshapeAll},
    {"aten.reshape.default", reshapeAll},
    {"aten.squeeze.default", reshapeAll},
    {"aten.unflatten.int", reshapeAll},
    {"aten.expand.default", expandAll},
    {"aten.repeat.default", repeatAll},
    {"aten.t.default", transposeAll},
    {"aten.new_zeros.default", sharedFactory},
    {"aten.new_ones.default", sharedFactory},
    {"aten.new_full.default", sharedFactory},
    {"aten.new_empty.default", sharedFactory},
    {"aten.unsqueeze.default", alongDims},
    {"aten.squeeze.dim", alongDims},
    {"aten.squeeze.dims", alongDims},
    {"aten.permute.default", alongDims},
    {"aten.transpose.int", alongDims},
    {"aten.select.int", alongDims},
    {"aten.slice.Tensor", alongDims},
    {"aten.narrow.default", alongDims},
    {"aten.diagonal.default", alongDims},
    {"aten.diag_embed.default", alongDims},
    {"aten.unfold.default", alongDims},
    {"aten.split.Tensor", alongDims},
    {"aten.split_with_sizes.default", alongDims},
    {"aten.unbind.int", alongDims},
    {"aten.cat.default", alongDims},
    {"aten.stack.default", alongDims},
    {"aten.flip.default", alongDims},
    {"aten.roll.default", alongDims},
    {"aten.select_scatter.default", alongDims},
    {"aten.slice_scatter.default", alongDimsTogether},
    {"aten.diagonal_scatter.default", alongDims},
    {"aten.gather.default", alongDimsTogether},
    {"aten.scatter.src", alongDimsTogether},
    {"aten.scatter.value", alongDimsTogether},
    {"aten.scatter_add.default", alongDimsTogether},
    {"aten.scatter_reduce.two", alongDimsTogether},
    {"aten.index_copy.default", alongSharedIndex},
    {"aten.index_add.default", alongSharedIndex},
    // Along one dim, which keeps its size.
    {"aten._softmax.default", alongDims},
    {"aten._log_softmax.default", alongDims},
    {"aten._safe_softmax.default", alongDims},
    {"aten.cumsum.default", alongDims},
    {"aten.cumprod.default", alongDims},
    {"aten.logcumsumexp.default", alongDims},
    {"aten.cummax.default", alongDims},
    {"aten.cummin.default", alongDims},
    {"aten.sort.default", alongDims},
    {"aten.sort.stable", alongDims},
    {"aten.argsort.default", alongDims},
    {"aten.argsort.stable", alongDims},
    {"aten.topk.default", alongDims},
    {"aten.glu.default", alongDims},
    {"aten._fft_r2c.default", alongDims},
    {"aten._fft_c2c.default", alongDims},
    {"aten._fft_c2r.default", alongDims},
};

}  // namespace

std::span<const BatchRow> batchedViews() { return kViews; }

}  // namespace cutaway
