// Every op table row against its own samples: the shape rule against the kernel's result, the in-place twin and the
// expansion against the functional op, the derivative against central differences in f64.
#include <QtTest>
#include <cmath>
#include <map>
#include <set>

#include "engine/ops/op_registry.h"
#include "engine/support/check.h"
#include "tests/support/op_samples.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Calls `row(name, op, text)` for every sample of every op that `wanted` accepts.
void addRows(bool (*wanted)(const Op&)) {
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("text");
    for (const Op* op : allOps())
        if (wanted(*op))
            for (const OpSample& sample : samplesOf(op->functional() ? *op->functional() : *op))
                QTest::newRow((op->name() + "#" + std::to_string(sample.number)).c_str())
                    << QString::fromStdString(op->name()) << QString::fromStdString(sample.text);
}
QByteArray message(const Error& error) { return QByteArray::fromStdString(error.text()); }

NodeValues inputValues(const SampleCall& sample) {
    NodeValues values;
    for (size_t i = 0; i < sample.placeholders.size(); ++i) values.set(*sample.placeholders[i], {sample.inputs[i]});
    return values;
}
std::vector<const TensorType*> typesOf(const ValueType& type) {
    std::vector<const TensorType*> types;
    if (type.tensor()) types.push_back(type.tensor());
    if (const TupleType* tuple = type.tuple())
        for (const ValueType& one : *tuple) {
            if (!one.tuple()) {
                types.push_back(one.tensor());
                continue;
            }
            const auto items = typesOf(one);  // a list among the results
            types.insert(types.end(), items.begin(), items.end());
        }
    return types;
}
/// "" if equal within the tolerance of the wider of `tolerance` and the dtype's own.
QByteArray difference(const Tensor& actual, const Tensor& expected, double tolerance = 0) {
    Tolerance limits = defaultTolerance(expected.dtype());
    limits.relative = std::max(limits.relative, tolerance);
    limits.absolute = std::max(limits.absolute, tolerance);
    const Comparison result = compare(actual, expected, limits);
    if (!result.sameType) return "dtype or shape differs";
    if (result.within) return {};
    return "element " + QByteArray::number(static_cast<qlonglong>(result.worst)) + " off by " +
           QByteArray::number(result.maxAbsoluteError);
}
/// Evaluates the nodes between the placeholders and `last`, in order.
Result<void> evaluateAll(const std::vector<Node*>& nodes, NodeValues& values) {
    for (const Node* node : nodes) {
        CT_TRY(TensorList result, evaluateNode(*node, values));
        values.set(*node, std::move(result));
    }
    return {};
}
/// Floating operands to which no gradient flows: running statistics, the weights of a loss, and the mask of the CPU's
/// attention (PyTorch's backward returns gradients of query, key and value only).
bool neverDifferentiated(const Op& op, std::string_view param) {
    // Rounding has no slope; the gradient passes straight through by definition.
    if (op.name().find("fake_quant") != std::string::npos) return true;
    if (param.starts_with("running_")) return true;
    if (op.name().starts_with("torchvision.")) return param == "rois";
    if (op.name().starts_with("aten.nll_loss")) return param == "weight";
    if (op.name() == "aten._scaled_dot_product_flash_attention_for_cpu.default" && param == "attn_mask") return true;
    if (op.name() == "aten.soft_margin_loss.default") return param == "target";
    return op.name().starts_with("aten.binary_cross_entropy") && (param == "weight" || param == "pos_weight");
}
/// A scalar loss of the floating results with fixed uneven weights, so that no two elements' gradients are alike.
double weightOf(size_t result, int64_t element) {
    return 0.25 + static_cast<double>((static_cast<int64_t>(result) * 5 + element * 7) % 11) / 8;
}
Tensor weights(size_t result, const Dims& sizes) {
    Tensor out = Tensor::zeros(DType::F64, sizes);
    for (int64_t i = 0; i < out.numel(); ++i) out.as<double>()[i] = weightOf(result, i);
    return out;
}
bool differentiableResult(const TensorType* type) { return type && type->dtype == DType::F64; }
/// Gradients flow through the first result, and through the others only where they are results of the same kind.
bool takesGradient(const Op& op, size_t result) {
    return result == 0 || op.schema()->returns[0].list || op.name() == "aten.var_mean.correction";
}
double lossOf(const Op& op, const TensorList& results) {
    double loss = 0;
    for (size_t r = 0; r < results.size(); ++r)
        if (takesGradient(op, r) && results[r].defined() && results[r].dtype() == DType::F64)
            for (int64_t i = 0; i < results[r].numel(); ++i) loss += weightOf(r, i) * toDouble(results[r].item(i));
    return loss;
}
/// A copy of the same strides with `change(i)` added to each element.
template <class Change>
Tensor shifted(const Tensor& tensor, Change change) {
    Tensor moved = Tensor::empty(DType::F64, tensor.sizes());
    for (int64_t i = 0; i < moved.numel(); ++i) moved.as<double>()[i] = toDouble(tensor.item(i)) + change(i);
    Tensor out = Tensor::empty(DType::F64, tensor.sizes(), tensor.strides());
    copyInto(out, moved);
    return out;
}
bool overlaps(const Tensor& tensor) {
    for (size_t d = 0; d < tensor.sizes().size(); ++d)
        if (tensor.strides()[d] == 0 && tensor.sizes()[d] > 1) return true;
    return false;
}
/// Sums a gradient of the broadcast shape down to the operand's, as the autograd driver does.
double gradientAt(const Tensor& gradient, const Dims& sizes, int64_t element) {
    Dims index(sizes.size());
    for (size_t d = sizes.size(); d-- > 0;) {
        index[d] = element % sizes[d];
        element /= sizes[d];
    }
    const size_t lead = gradient.sizes().size() - sizes.size();
    double sum = 0;
    for (int64_t i = 0; i < gradient.numel(); ++i) {
        int64_t rest = i;
        bool matches = true;
        for (size_t d = gradient.sizes().size(); d-- > 0;) {
            const int64_t at = rest % gradient.sizes()[d];
            rest /= gradient.sizes()[d];
            if (d >= lead && sizes[d - lead] != 1 && index[d - lead] != at) matches = false;
        }
        if (matches) sum += toDouble(gradient.item(i));
    }
    return sum;
}

}  // namespace

class OpsTest : public QObject {
    Q_OBJECT

  private slots:
    void everyRowHasSamples();
    void infersWhatItComputes_data() {
        addRows([](const Op& op) { return op.def() && op.functional() == nullptr; });
    }
    void infersWhatItComputes();
    void inplaceTwins_data() {
        addRows([](const Op& op) { return op.functional() != nullptr && !op.functional()->is(Tag::Random); });
    }
    void inplaceTwins();
    void expansions_data() {
        addRows([](const Op& op) { return op.def() && op.def()->decompose && !op.is(Tag::Random); });
    }
    void expansions();
    void derivatives_data() {
        addRows([](const Op& op) { return op.def() && op.def()->derive && !op.is(Tag::Random); });
    }
    void derivatives();
    void refusals_data();
    void refusals();
};

void OpsTest::everyRowHasSamples() {
    // Ops whose calls cannot be written as a sample: they take a tuple, numbers of the graph or another op's results,
    // act by their effect, exist in PyTorch as a kernel or a lowering only, have no type without an annotation, or need
    // another device or a group of processes to be compared with.
    static const std::set<std::string> kWithout = {
        "operator.getitem", "aten._assert_tensor_metadata.default", "prims.device_put.default",
        "aten._scaled_dot_product_flash_attention_for_cpu_backward.default", "prims.inductor_cvt_e8m0_rceil.default",
        "aten._scaled_dot_product_efficient_attention.default", "aten._scaled_dot_product_flash_attention.default",
        "aten._scaled_dot_product_flash_attention_backward.default", "aten._scaled_dot_product_cudnn_attention.default",
        "aten._scaled_dot_product_cudnn_attention_backward.default",
        "aten._scaled_dot_product_efficient_attention_backward.default",
        "torch__inductor_fx_passes_post_grad_mm_plus_mm", "torch__inductor_fx_passes_post_grad_cat_slice_cat",
        "torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace",
        "torch__inductor_fx_passes_post_grad_cat_splitwithsizes_replace",
        "torch__inductor_mkldnn_lowerings_grouped_gemm_lowering", "fbgemm.gmm.default",
        "torch__inductor_fx_passes_quantization_qconv", "torch__inductor_fx_passes_quantization_qconv_binary",
        "torch__inductor_fx_passes_quantization_qlinear", "torch__inductor_fx_passes_quantization_qlinear_binary",
        // Tangents of dual tensors are what a pass computes; forward_ad_test has the calls.
        "aten._make_dual.default", "aten._unpack_dual.default", "torch._C._enter_dual_level",
        "torch._C._exit_dual_level", "torch._C._functorch._jvp_increment_nesting",
        "torch._C._functorch._jvp_decrement_nesting",
        // Where examples begin and end is what the pass vmap resolves; its cases have the calls.
        "torch._C._functorch._add_batch_dim", "torch._C._functorch._remove_batch_dim",
        // What is in new memory, numbers and tokens.
        "prims.empty_strided.default", "prims.empty_permuted.default", "prims.maximum_value.default",
        "prims.minimum_value.default", "prims._make_token.default", "prims._sink_tokens.default",
        // Of sparse tensors, which samples do not have; eager_values_test holds them to PyTorch.
        "aten.sparse_coo_tensor.indices_size", "aten._sparse_coo_tensor_unsafe.default",
        "aten._sparse_coo_tensor_with_dims_and_tensors.default", "aten.sparse_coo_tensor.size", "aten.coalesce.default",
        "aten._coalesce.default", "aten.to_dense.default", "aten._to_dense.default", "aten.to_sparse.sparse_dim",
        "aten.to_sparse.default", "aten._to_sparse.sparse_dim", "aten._to_sparse.default", "aten._sparse_mm.default",
        "aten.smm.default", "aten.hspmm.default", "aten._sparse_addmm.default", "aten.sspaddmm.default",
        // Reads what a forward of the library keeps; eager_values_test has both.
        "aten.mkldnn_rnn_layer_backward.default",
        // Is refused: PyTorch has no kernel of it.
        "prims.xor_sum.default",
        // Their memory depends on the processor; post_grad_test holds them to what they mean.
        "aten._convert_weight_to_int4pack_for_cpu.default", "aten._weight_int4pack_mm_for_cpu.default"};
    QStringList missing;
    for (const Op* op : allOps()) {
        const bool ofGroup = op->name().starts_with("_c10d_functional.") || op->name().starts_with("fsdp.") ||
                             op->name().starts_with("symm_mem.");
        if (op->def() && op->functional() == nullptr && op->def()->samples.empty() && !ofGroup &&
            !kWithout.contains(op->name()) && op->def()->eval && !op->is(Tag::Symbolic) &&
            !op->is(Tag::DataDependent) && !op->is(Tag::Impure))
            missing << QString::fromStdString(op->name());
    }
    QVERIFY2(missing.isEmpty(), qPrintable("no samples: " + missing.join(", ")));
}

void OpsTest::infersWhatItComputes() {
    QFETCH(QString, op);
    QFETCH(QString, text);
    auto sample = buildSample(requireOp(op.toStdString()), text.toStdString());
    QVERIFY2(sample, sample ? "" : message(sample.error()));
    const Node& call = *(*sample)->call;
    auto results = evaluateNode(call, inputValues(**sample));
    QVERIFY2(results, results ? "" : message(results.error()));
    const auto types = typesOf(call.type());
    QCOMPARE(results->size(), types.size());
    for (size_t i = 0; i < types.size(); ++i) {
        const Tensor& result = (*results)[i];
        if (types[i] == nullptr) {
            QVERIFY(!result.defined());
            continue;
        }
        QCOMPARE(int(result.dtype()), int(types[i]->dtype));
        QCOMPARE(result.sizes(), toInts(types[i]->sizes));
        QCOMPARE(result.strides(), toInts(types[i]->strides));
    }
}

void OpsTest::inplaceTwins() {
    QFETCH(QString, op);
    QFETCH(QString, text);
    const Op& twin = requireOp(op.toStdString());
    auto functional = buildSample(*twin.functional(), text.toStdString());
    QVERIFY2(functional, functional ? "" : message(functional.error()));
    const TensorType* wide = (*functional)->call->type().tensor();
    if ((*functional)->specs.empty() || (*functional)->call->arg(0).node() != (*functional)->placeholders[0])
        return;  // a number cannot be written to
    const TensorSpec& self = (*functional)->specs[0];
    bool overlapping = false;
    for (size_t d = 0; d < self.sizes.size(); ++d) overlapping |= self.strides[d] == 0 && self.sizes[d] > 1;
    if (wide == nullptr || toInts(wide->sizes) != self.sizes || overlapping) return;
    auto sample = buildSample(twin, text.toStdString());
    const auto kind = [](DType dtype) {
        if (isComplex(dtype)) return 3;
        if (isFloating(dtype)) return 2;
        return dtype == DType::Bool ? 0 : 1;
    };
    if (kind(wide->dtype) > kind(self.dtype)) {
        QVERIFY2(!sample && sample.error().message.find("cannot hold") != std::string::npos,
                 "what the result is cannot be written to the tensor");
        return;
    }
    QVERIFY2(sample, sample ? "" : message(sample.error()));
    auto expected = evaluateNode(*(*functional)->call, inputValues(**functional));
    QVERIFY2(expected, expected ? "" : message(expected.error()));
    auto written = evaluateNode(*(*sample)->call, inputValues(**sample));
    QVERIFY2(written, written ? "" : message(written.error()));
    QCOMPARE((*written)[0].storage(), (*sample)->inputs[0].storage());
    const QByteArray wrong = difference((*sample)->inputs[0], (*expected)[0].to(self.dtype));
    QVERIFY2(wrong.isEmpty(), wrong);
}

void OpsTest::expansions() {
    QFETCH(QString, op);
    QFETCH(QString, text);
    const Op& row = requireOp(op.toStdString());
    auto sample = buildSample(row, text.toStdString());
    if (row.functional() && !sample && sample.error().message.find("cannot hold") != std::string::npos)
        return;  // see inplace()
    QVERIFY2(sample, sample ? "" : message(sample.error()));
    const auto apart = buildSample(row, text.toStdString());  // what the call writes is not what the expansion reads
    auto expected = evaluateNode(*(*apart)->call, inputValues(**apart));
    QVERIFY2(expected, expected ? "" : message(expected.error()));
    NodeValues values = inputValues(**sample);
    GraphBuilder builder((*sample)->graph, (*sample)->call);
    Decomposition decomposition(*(*sample)->call, builder);
    Values expanded = Values::notHandled();
    try {
        expanded = row.def()->decompose(decomposition);
    } catch (const InternalError& error) {
        QFAIL(error.what());
    }
    QVERIFY2(!builder.error(), builder.error() ? message(*builder.error()) : "");
    if (!expanded.handled()) return;
    // Filling in defaults, or dropping a dim of size 1, is the way to mention itself; that must come to an end.
    std::vector<const Node*> again(builder.created().begin(), builder.created().end());
    for (int depth = 0; depth < 3 && !again.empty(); ++depth) {
        std::vector<const Node*> made;
        for (const Node* node : again) {
            if (&node->op() != &row) continue;
            GraphBuilder next((*sample)->graph, (*sample)->call);
            Decomposition second(*node, next);
            if (row.def()->decompose(second).handled())
                made.insert(made.end(), next.created().begin(), next.created().end());
        }
        again = std::move(made);
    }
    QVERIFY2(std::none_of(again.begin(), again.end(), [&](const Node* node) { return &node->op() == &row; }),
             "the expansion contains the op itself without end");
    auto done = evaluateAll(builder.created(), values);
    QVERIFY2(done, done ? "" : message(done.error()));
    if (row.def()->tags == Tag::Factory && op.startsWith("aten.empty")) return;
    size_t result = 0;
    for (const Value& value : expanded.values()) {
        if (!value) {
            ++result;
            continue;
        }
        for (const Tensor& actual : values.valueOf(*value.node())) {
            // Products of halves round what they are given, such as the weights of attention.
            const double allowed = row.is(Tag::Heavy) && isHalf(actual.dtype()) ? 1e-2 : 1e-5;
            const QByteArray wrong = difference(actual, (*expected)[result], allowed);
            QVERIFY2(wrong.isEmpty(), "result " + QByteArray::number(static_cast<int>(result)) + ": " + wrong);
            ++result;
        }
    }
}

void OpsTest::derivatives() {
    QFETCH(QString, op);
    QFETCH(QString, text);
    const Op& row = requireOp(op.toStdString());
    static const std::map<std::string, const char*> kOtherwise = {
        {"aten.embedding.default#1", "the padding row gets no gradient by definition"},
        {"aten._embedding_bag.default#5", "gradients scaled by frequency are not the derivative by definition"},
        {"aten.cholesky_inverse.default#0", "the derivative is that of L L^H, the kernel reads one triangle of L"},
        {"aten.cholesky_inverse.default#1", "the derivative is that of L L^H, the kernel reads one triangle of L"},
        {"aten.cholesky_inverse.default#2", "the derivative is that of L L^H, the kernel reads one triangle of L"},
        {"aten.cholesky_solve.default#0", "the derivative is that of L L^H, the kernel reads one triangle of L"},
        {"aten.cholesky_solve.default#1", "the derivative is that of L L^H, the kernel reads one triangle of L"},
        {"aten.cholesky_solve.default#2", "the derivative is that of L L^H, the kernel reads one triangle of L"},
        {"aten._ctc_loss.default#0", "the gradient is that of the scores before log_softmax by definition"},
        {"aten._ctc_loss.default#1", "the gradient is that of the scores before log_softmax by definition"},
        {"aten._ctc_loss.default#2", "the gradient is that of the scores before log_softmax by definition"},
        {"aten._ctc_loss.Tensor#0", "the gradient is that of the scores before log_softmax by definition"},
        {"aten._ctc_loss.Tensor#1", "the gradient is that of the scores before log_softmax by definition"},
        {"aten.embedding_dense_backward.default#1", "PyTorch's derivative leaves the scale by frequency out"},
    };
    if (const auto found = kOtherwise.find(QTest::currentDataTag()); found != kOtherwise.end()) QSKIP(found->second);
    auto built = buildSample(row, widenedSample(text.toStdString()));
    if (!built) return;  // the call exists for half floats only
    SampleCall& sample = **built;
    const auto types = typesOf(sample.call->type());
    if (std::none_of(types.begin(), types.end(), differentiableResult)) return;
    // Off the grid the samples lie on, so that no element sits on a kink or ties with another.
    for (size_t t = 0; t < sample.inputs.size(); ++t) {
        if (sample.inputs[t].dtype() != DType::F64) continue;
        if (overlaps(sample.inputs[t])) return;
        sample.inputs[t] = shifted(sample.inputs[t], [t](int64_t i) {
            return 0.0031 + 0.00003 * static_cast<double>((i * 7 + static_cast<int64_t>(t) * 3) % 97);
        });
    }
    NodeValues values = inputValues(sample);
    auto forward = evaluateNode(*sample.call, values);
    QVERIFY2(forward, forward ? "" : message(forward.error()));
    values.set(*sample.call, *forward);

    GraphBuilder builder(sample.graph);
    std::vector<Value> results, gradients;
    const bool tuple = sample.call->type().tuple() != nullptr;
    for (size_t r = 0; r < types.size(); ++r) {
        results.push_back(tuple ? builder.value(*sample.call)[static_cast<int64_t>(r)] : builder.value(*sample.call));
        if (!differentiableResult(types[r]) || !takesGradient(row, r)) {
            gradients.emplace_back();
            continue;
        }
        Node& gradient =
            sample.graph.placeholder("g", ValueType(TensorType::contiguous(DType::F64, types[r]->sizes)), sample.call);
        values.set(gradient, {weights(r, toInts(types[r]->sizes))});
        gradients.push_back(builder.value(gradient));
    }
    Derivation derivation(*sample.call, builder, results, gradients);
    try {
        row.def()->derive(derivation);
    } catch (const InternalError& error) {
        QFAIL(error.what());
    }
    if (builder.error() && builder.error()->message.find("known only at run time") != std::string::npos)
        QSKIP(message(*builder.error()));
    if (builder.error() && builder.error()->message.find("has no derivative here") != std::string::npos)
        QSKIP(message(*builder.error()));
    QVERIFY2(!builder.error(), builder.error() ? message(*builder.error()) : "");
    auto done = evaluateAll(builder.created(), values);
    QVERIFY2(done, done ? "" : message(done.error()));

    const auto& slots_ = derivation.inputGradients();
    for (size_t p = 0; p < sample.call->args().size(); ++p) {
        if (neverDifferentiated(row, row.schema()->params[p].name)) continue;
        std::vector<Node*> operands;
        sample.call->arg(p).forEachNode([&](Node* node) { operands.push_back(node); });
        for (size_t item = 0; item < operands.size(); ++item) {
            const auto at =
                static_cast<size_t>(std::find(sample.placeholders.begin(), sample.placeholders.end(), operands[item]) -
                                    sample.placeholders.begin());
            Tensor& input = sample.inputs[at];
            if (input.dtype() != DType::F64) continue;
            const Value gradient = item < slots_[p].size() ? slots_[p][item] : Value();
            for (int64_t i = 0; i < input.numel(); ++i) {
                const double step = 1e-5;
                double loss[2];
                for (int side = 0; side < 2; ++side) {
                    NodeValues around = inputValues(sample);
                    around.set(*sample.placeholders[at], {shifted(input, [&](int64_t k) {
                        return k != i ? 0 : side == 0 ? step : -step;
                    })});
                    auto result = evaluateNode(*sample.call, around);
                    QVERIFY2(result, result ? "" : message(result.error()));
                    loss[side] = lossOf(row, *result);
                }
                const double expected = (loss[0] - loss[1]) / (2 * step);
                const double actual = gradient ? gradientAt(values.valueOf(*gradient.node())[0], input.sizes(), i) : 0;
                if (std::isnan(expected) || std::isinf(expected)) continue;
                QVERIFY2(std::fabs(actual - expected) <= 1e-4 * (1 + std::fabs(expected)) + 1e-11 * std::fabs(loss[0]),
                         ("operand " + std::to_string(p) + " element " + std::to_string(i) + ": " +
                          std::to_string(actual) + ", differences give " + std::to_string(expected))
                             .c_str());
            }
        }
    }
}

void OpsTest::refusals_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("reason");
    auto row = [](const char* op, const char* text, const char* reason) {
        QTest::newRow((std::string(op) + "(" + text + ")").c_str()) << op << text << reason;
    };
    row("aten.add.Tensor", "f32[2, 3], f32[4]", "do not broadcast");
    row("aten.sub.Tensor", "b8[3], b8[3]", "does not subtract bool");
    row("aten.neg.default", "b8[3]", "does not take bool");
    row("aten.bitwise_and.Tensor", "f32[2], i64[2]", "needs integers or bool");
    row("aten.erf.default", "c64[2]", "no complex kernel");
    row("aten.where.self", "f32[2], f32[2], f32[2]", "not bool");
    row("aten.div.Tensor_mode", "f32[2], 2, rounding_mode = 'up'", "'floor' or 'trunc'");
    row("aten.pow.Tensor_Scalar", "i64[2], -1", "negative integer powers");
    row("aten.clamp.default", "f32[2]", "needs min or max");
    row("aten.sum.dim_IntList", "f32[2, 3], [2]", "out of range");
    row("aten.sum.dim_IntList", "f32[2, 3], [0, -2]", "appears twice");
    row("aten.mean.dim", "i64[2, 3], [0]", "no result dtype");
    row("aten.amax.default", "f32[2, 0], [1]", "has no elements");
    row("aten.var.correction", "i64[3]", "floating-point");
    row("aten._softmax.default", "f32[2], 3, False", "out of range");
    row("aten.softmax.int", "f32[2], 3", "out of range");
    row("aten.native_layer_norm.default", "f32[2, 3], [4], None, None, 1e-5", "does not match the last dims");
    row("aten.batch_norm.default", "f32[2, 3], None, None, None, None, False, 0.1, 1e-5, True", "needs running_mean");
    row("aten.gelu.default", "f32[2], approximate = 'fast'", "'none' or 'tanh'");
    row("aten.glu.default", "f32[3]", "does not split in halves");
    row("aten.max_pool2d_with_indices.default", "f32[1, 1, 9, 9], 3, 1, 2, 2", "more than half of the kernel's 3");
    row("aten.arange.start_step", "1, 5, 0", "the step is 0");
    row("aten.arange.start", "5, 1", "wrong side");
    row("aten.clone.default", "f32[2, 3], memory_format = torch.channels_last", "does not fit");
    row("aten.empty_strided.default", "[2, 3], [1]", "differ in length");
    row("prims.xor_sum.default", "i64[4], [0]", "combine the items with aten.bitwise_xor.Tensor");
    row("prims.maximum_value.default", "torch.float32", "write it in its place");
    row("aten._assert_tensor_metadata.default", "f32[2], None, None, torch.float64", "asserted float64");
}
void OpsTest::refusals() {
    QFETCH(QString, op);
    QFETCH(QString, text);
    QFETCH(QString, reason);
    auto sample = buildSample(requireOp(op.toStdString()), text.toStdString());
    QVERIFY2(!sample, "accepted");
    QVERIFY2(QString::fromStdString(sample.error().message).contains(reason), message(sample.error()));
    QVERIFY2(QString::fromStdString(sample.error().message).contains(op), "the message names the op");
}

CUTAWAY_SUITE(OpsTest)
#include "ops_test.moc"
