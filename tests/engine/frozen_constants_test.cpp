// Constants of frozen graphs: that nobody holds what is computed on its way, and what is told of their numbers.
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <cstring>

#include "cutaway/session.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/message.h"
#include "engine/text/parse.h"
#include "tests/support/frozen.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

// A weight and its packed form are views of one product; the sum is read in its own strides.
constexpr const char* kViewed = R"(def forward(
    w: "f32[3, 4]",  # ParamAOTInput(target='w')
    v: "f32[4, 3]",  # ParamAOTInput(target='v')
    x: "f32[2, 4]",  # PlainAOTInput(idx=0)
):
    d: "f32[3, 4]" = aten.mul.Tensor(w, 2.0)
    t: "f32[4, 3][1, 4]" = aten.permute.default(d, [1, 0])
    y: "f32[2, 3]" = aten.mm.default(x, t)
    p: "f32[3, 4][1, 3]" = aten.permute.default(v, [1, 0])
    s: "f32[3, 4][1, 3]" = aten.add.Tensor(p, 1.0)
    z: "f32[2, 4]" = aten.mm.default(y, s)
    return (z,)
)";

CompileTrace frozenText(const char* text) {
    auto module = parseText(text);
    if (!module) qFatal("%s", module.error().text().c_str());
    CompileRequest request;
    request.freeze = true;
    auto trace = runPipeline(std::move(*module), request);
    if (!trace) qFatal("%s", trace.error().text().c_str());
    return std::move(*trace);
}

}  // namespace

class FrozenConstantsTest : public QObject {
    Q_OBJECT

  private slots:
    /// Values that are computed when somebody needs them are those that are computed at once, and nothing keeps them.
    void deferredConstantsAreTheSame_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("folded convolution") << QByteArray(kNormed);
        QTest::newRow("views of one value, other strides") << QByteArray(kViewed);
    }
    void deferredConstantsAreTheSame() {
        QFETCH(QByteArray, text);
        const CompileTrace trace = frozenText(text.constData());
        const Module& graph = *trace.resultOf("main");
        QVERIFY(!graph.recipes.empty());
        const auto deferred = withDeferredConstants(graph);
        QVERIFY(deferred && *deferred);
        QVERIFY((*deferred)->recipes.empty());
        const auto complete = withConstants(graph);
        QVERIFY(complete && *complete);
        for (const auto& [name, recipe] : graph.recipes) {
            const Tensor later = (*deferred)->tensors.at(name), now = (*complete)->tensors.at(name);
            QCOMPARE(later.sizes(), now.sizes());
            QVERIFY(later.dtype() == now.dtype());
            const TensorType& type = (*deferred)->graph().findByName(nodeOf(graph, name))->tensor();
            QCOMPARE(later.strides(), toInts(type.strides));
            const auto once = Storage::forOneUse(later.storage());
            QVERIFY(once.has_value());
            if (!recipe->isView()) QVERIFY(*once != later.storage());
            const Tensor read(*once, later.dtype(), later.sizes(), later.strides(), later.offset());
            const Tensor a = read.contiguous(), b = now.contiguous();
            QCOMPARE(std::memcmp(a.data(), b.data(), a.bytes()), 0);
        }
    }

    void viewsOfADeferredValueShareIt() {
        const CompileTrace trace = frozenText(kViewed);
        const auto deferred = withDeferredConstants(*trace.resultOf("main"));
        QVERIFY(deferred && *deferred);
        std::map<const Storage*, int> readers;
        for (const auto& [name, recipe] : trace.resultOf("main")->recipes)
            ++readers[(*deferred)->tensors.at(name).storage().get()];
        QCOMPARE(readers.size(), size_t{2});  // the product, and the sum
        QCOMPARE((*deferred)->tensors.size(), size_t{4});
    }

    void handingOverCanBeCancelledAndFail() {
        auto memory = SharedMemory::create("the weights");
        QVERIFY(memory.has_value());
        std::atomic<int> computed{0};
        const auto tensor = [&](bool fails) {
            return Tensor(Storage::deferred(4096,
                                            [&computed, fails](std::span<std::byte>) -> Result<void> {
                                                ++computed;
                                                if (fails) return Error{ErrorCode::NotFound, "it is gone", "w", {}};
                                                return {};
                                            }),
                          DType::F32, {1024}, {1});
        };
        Progress stopped;
        stopped.cancel->cancel();
        const auto cancelled = writeMessage(*memory, 0, "text", {tensor(false), tensor(false)}, 2, stopped);
        QVERIFY(!cancelled);
        QCOMPARE(cancelled.error().code, ErrorCode::Cancelled);
        QCOMPARE(computed.load(), 0);
        const auto failed = writeMessage(*memory, 0, "text", {tensor(false), tensor(true), tensor(false)}, 2);
        QVERIFY(!failed);
        QCOMPARE(failed.error().message, std::string("it is gone"));
        const int before = computed;
        QVERIFY(writeMessage(*memory, 0, "text", {tensor(false), tensor(false), tensor(false)}, 2).has_value());
        QCOMPARE(computed - before, 3);
    }

    /// Those of the parameters stand beside those of what was folded from them.
    void numbersOfWhatAConstantIsMadeFrom() {
        QTemporaryDir folder;
        Session session;
        QVERIFY(session.open(written(folder, "normed.py", kNormed)));
        CompileRequest request;
        request.freeze = true;
        QVERIFY(session.compile(request));
        const Place last{0, static_cast<int>(session.steps(0)->size()) - 1, -1};
        const auto graph = session.diff(last, last);
        int folded = 0;
        for (const UnionGraph::Node& node : graph->nodes) {
            const auto details = session.node(last, node.info.id);
            if (!details->constant) continue;
            const auto values = session.values(last, node.info.id);
            QVERIFY(values.has_value());
            if (details->constant->recipe.empty()) continue;
            ++folded;
            QCOMPARE(values->sources.size(), details->constant->sources.size());
            for (size_t i = 0; i < values->sources.size(); ++i) {
                const ValueSummary& source = values->sources[i];
                const auto& [name, type] = details->constant->sources[i];
                QCOMPARE(source.elements, name == "conv.weight" ? int64_t{108} : int64_t{4});
                QVERIFY2(source.least < source.mean && source.mean < source.most && source.madeUp, name.c_str());
                QVERIFY(source.sources.empty());
            }
        }
        QCOMPARE(folded, 2);  // weight and bias
    }

  private:
    /// A node that reads this constant.
    static std::string nodeOf(const Module& graph, const std::string& constant) {
        for (const Node& node : graph.graph().nodes())
            if (node.kind() == NodeKind::GetAttr && node.target() == constant) return node.name();
        qFatal("nobody reads %s", constant.c_str());
    }
};

CUTAWAY_SUITE(FrozenConstantsTest)
#include "frozen_constants_test.moc"
