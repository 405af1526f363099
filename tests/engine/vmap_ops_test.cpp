// Every operator under torch.vmap: what the pass makes of a sample's call, for all examples at once, gives each example
// what the call alone gives it. Examples run along the first dim of every operand, and along the last dim of one
// operand at a time while all share the others.
#include <QtTest>
#include <algorithm>
#include <cstring>
#include <set>

#include "engine/interpret/interpret.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/pipeline.h"
#include "tests/support/op_samples.h"
#include "tests/support/suites.h"
#include "tests/support/symbolic_samples.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr int64_t kExamples = 2;

/// Of one example, from those of the first: the elements in the opposite order, so that ranges stay; laid out as the
/// call was typed for.
Tensor exampleOf(const Tensor& first, int64_t example) {
    Tensor made = first.contiguous().clone();
    const auto bytes = static_cast<size_t>(byteSize(made.dtype()));
    auto* const data = static_cast<std::byte*>(made.data());
    if (example > 0)
        for (int64_t i = 0, j = made.numel() - 1; i < j; ++i, --j)
            std::swap_ranges(data + static_cast<size_t>(i) * bytes, data + static_cast<size_t>(i + 1) * bytes,
                             data + static_cast<size_t>(j) * bytes);
    Tensor laid = Tensor::empty(first.dtype(), first.sizes(), first.strides());
    copyInto(laid, made);
    return laid;
}
/// Elements that lie in one place are the same in each example.
bool repeats(const Tensor& tensor) {
    for (size_t d = 0; d < tensor.sizes().size(); ++d)
        if (tensor.sizes()[d] > 1 && tensor.strides()[d] == 0) return true;
    return false;
}

/// All examples, along a dim of the result.
Tensor together(const std::vector<Tensor>& examples, int64_t dim) {
    Dims sizes = examples[0].sizes();
    sizes.insert(sizes.begin(), static_cast<int64_t>(examples.size()));
    Tensor all = Tensor::empty(examples[0].dtype(), sizes);
    const auto bytes = static_cast<size_t>(examples[0].numel() * byteSize(examples[0].dtype()));
    for (size_t i = 0; i < examples.size(); ++i)
        std::memcpy(static_cast<std::byte*>(all.data()) + i * bytes, examples[i].contiguous().data(), bytes);
    Dims moved = all.sizes(), strides = all.strides();
    std::rotate(moved.begin(), moved.begin() + 1, moved.begin() + dim + 1);
    std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + dim + 1);
    return all.view(moved, strides, all.offset()).contiguous().clone();
}

struct Batched {
    std::shared_ptr<Module> module;
    std::vector<Tensor> inputs;
    std::vector<std::vector<Tensor>> examples;  // of each operand what each example has of it
};

/// `only`: the operand that goes through the examples, along its last dim; -1: all, along their first.
Result<Batched> batchedSample(const SampleCall& sample, int only) {
    Batched made{std::make_shared<Module>(), {}, {}};
    Graph& graph = made.module->graph();
    std::map<const Node*, Node*> given;
    std::vector<std::pair<const Node*, int64_t>> batched;
    for (size_t t = 0; t < sample.placeholders.size(); ++t) {
        TensorType type = sample.placeholders[t]->tensor();
        const bool goes = only < 0 || only == static_cast<int>(t);
        const int64_t dim = only < 0 ? 0 : type.rank();
        std::vector<Tensor>& examples = made.examples.emplace_back();
        for (int64_t e = 0; e < kExamples; ++e) examples.push_back(exampleOf(sample.inputs[t], goes ? e : 0));
        made.inputs.push_back(goes ? together(examples, dim) : examples[0]);
        SymDims sizes = type.sizes;
        if (goes) sizes.insert(sizes.begin() + dim, SymInt(kExamples));
        given[sample.placeholders[t]] =
            &graph.placeholder("x" + std::to_string(t), TensorType::contiguous(type.dtype, sizes, type.device));
        made.module->inputs.emplace_back();
        if (goes) batched.emplace_back(sample.placeholders[t], dim);
    }
    GraphBuilder builder(graph);
    builder.call(requireOp("torch._C._functorch._vmap_increment_nesting"),
                 {Argument(kExamples), Argument(std::string("error"))});
    for (const auto& [operand, dim] : batched)
        given[operand] = builder
                             .call(requireOp("torch._C._functorch._add_batch_dim"),
                                   {Argument(given[operand]), Argument(dim), Argument(int64_t{1})})
                             .node();
    if (builder.error()) return *builder.error();
    std::vector<Argument> args;
    for (const Argument& arg : sample.call->args())
        args.push_back(arg.mapNodes([&](Node* node) { return given.at(node); }));
    Node* const call = builder.callBound(sample.call->op(), std::move(args)).node();
    if (builder.error()) return *builder.error();
    ArgumentList results{{}, true};
    const TupleType* const types = call->type().tuple();
    for (size_t i = 0; i < (types ? types->size() : 1); ++i) {
        const ValueType& type = types ? (*types)[i] : call->type();
        if (type.tensor() == nullptr) continue;
        Node* const one = types ? builder.value(*call)[static_cast<int64_t>(i)].node() : call;
        results.items.emplace_back(
            builder
                .call(requireOp("torch._C._functorch._remove_batch_dim"),
                      {Argument(one), Argument(int64_t{1}), Argument(kExamples), Argument(int64_t{0})})
                .node());
    }
    builder.call(requireOp("torch._C._functorch._vmap_decrement_nesting"), {});
    if (builder.error()) return *builder.error();
    made.module->outputs.resize(results.items.size());
    graph.output({Argument(std::move(results))});
    return made;
}

/// Results in lists of their own are not taken apart here.
bool hasLists(const ValueType& type) {
    const TupleType* const items = type.tuple();
    return items && std::any_of(items->begin(), items->end(), [](const ValueType& item) { return item.tuple(); });
}

/// What each example has of the call's tensors, joined; an error where the call fails.
Result<std::vector<Tensor>> oneByOne(const SampleCall& sample, const Batched& batched) {
    std::vector<std::vector<Tensor>> all;
    for (int64_t e = 0; e < kExamples; ++e) {
        NodeValues values;
        for (size_t t = 0; t < sample.placeholders.size(); ++t)
            values.set(*sample.placeholders[t], {batched.examples[t][static_cast<size_t>(e)]});
        CT_TRY(const TensorList results, evaluateNode(*sample.call, values));
        size_t next = 0;
        for (const Tensor& result : results) {
            if (!result.defined()) continue;
            if (all.size() <= next) all.emplace_back();
            all[next++].push_back(result);
        }
    }
    std::vector<Tensor> joined;
    for (const std::vector<Tensor>& examples : all) joined.push_back(together(examples, 0));
    return joined;
}

}  // namespace

class VmapOpsTest : public QObject {
    Q_OBJECT

    /// "" where all is well; what differs.
    std::string wrong(const OpSample& one, int only) {
        auto sample = buildSample(*one.op, one.text);
        // Which results bags of embeddings have follows from the layout of the weights, which a map gives one by one.
        if (only == 0 && one.op->name().find("embedding_bag") != std::string::npos) return {};
        if (!sample || hasLists((*sample)->call->type())) return {};
        for (const Tensor& input : (*sample)->inputs)
            if (!input.defined() || repeats(input)) return {};
        auto batched = batchedSample(**sample, only);
        if (!batched) return {};  // the type of one example has other strides, which the call does not take
        const auto expected = oneByOne(**sample, *batched);
        if (!expected) return {};
        CompileRequest request;
        request.onlyStage = "capture";
        const auto trace = runPipeline(batched->module, request);
        if (!trace) return trace.error().text();
        // Memory read by its position has no examples; what is written with as_strided is refused, too.
        if (const std::string& said = trace->failed() ? trace->steps.back().info.error : std::string(); !said.empty())
            return said.find("as_strided.default: inside of vmap") == std::string::npos ? said : std::string();
        const auto actual = interpret(*trace->result(), batched->inputs);
        if (!actual) return actual.error().text();
        // What they return beside their results follows the layout of what they are given.
        static const std::set<std::string_view> kFirstResultOnly = {"embedding_bag", "_embedding_bag",
                                                                    "_embedding_bag_forward_only", "_linalg_det"};
        if (kFirstResultOnly.contains(one.op->baseName()) && !actual->empty())
            return differing({actual->front()}, {expected->front()});
        if (one.op->baseName() == "_linalg_slogdet")
            return differing({(*actual)[0], (*actual)[1]}, {(*expected)[0], (*expected)[1]});
        return differing(*actual, *expected);
    }

  private slots:
    void samples_data() {
        QTest::addColumn<QString>("op");
        for (const Op* op : allOps())
            if (op->def() && op->functional() == nullptr && !op->def()->samples.empty() && !drawsNumbers(*op) &&
                !op->is(Tag::DataDependent) && !op->is(Tag::Impure) && !op->mutates())
                QTest::newRow(op->name().c_str()) << QString::fromStdString(op->name());
    }
    void samples() {
        QFETCH(QString, op);
        std::string all;
        for (const OpSample& one : samplesOf(requireOp(op.toStdString()))) {
            const auto parsed = parseSample(one.text);
            const int operands = parsed ? static_cast<int>((*parsed)->placeholders.size()) : 0;
            if (operands == 0) continue;
            for (int only = -1; only < (operands > 1 ? operands : 1); ++only)
                if (const std::string said = wrong(one, only); !said.empty())
                    all += "\n" + one.text + (only < 0 ? ", all" : ", operand " + std::to_string(only)) + ": " + said;
        }
        QVERIFY2(all.empty(), all.c_str());
    }
};

CUTAWAY_SUITE(VmapOpsTest)
#include "vmap_ops_test.moc"
