// Random graphs of what the passes look for: whatever stands beside whatever, every step of the pipeline verifies and
// keeps the numbers. The seed is in the row's name; CUTAWAY_SEED starts elsewhere, CUTAWAY_SEEDS makes more rows.
#include <QtTest>

#include "cutaway/session.h"
#include "engine/autograd/joint_graph.h"
#include "engine/ir/verify.h"
#include "engine/ops/build.h"
#include "engine/session/session_state.h"
#include "engine/support/random.h"
#include "engine/text/print.h"
#include "tests/support/lost_numbers.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// Grows a graph by calls on values it has. A call that does not fit is left out: the next one is drawn.
class RandomGraph {
  public:
    explicit RandomGraph(uint64_t seed) : m_random(seed) {
        for (const char* name : {"x", "y", "z"}) {
            const Dims sizes[] = {{4, 6}, {2, 3, 4}, {6}, {1, 4}, {3, 1, 1}, {8}, {}};
            m_values.push_back(&m_graph.placeholder(
                name, TensorType::contiguous(DType::F32, toSymDims(sizes[below(std::size(sizes))]))));
        }
    }

    /// As FX text.
    std::string grown(int calls) {
        static constexpr void (RandomGraph::*kSteps[])(GraphBuilder&) = {
            &RandomGraph::permute, &RandomGraph::view,    &RandomGraph::constant, &RandomGraph::binary,
            &RandomGraph::neutral, &RandomGraph::scaled,  &RandomGraph::unary,    &RandomGraph::noop,
            &RandomGraph::slice,   &RandomGraph::join,    &RandomGraph::pieces,   &RandomGraph::softmax,
            &RandomGraph::product, &RandomGraph::counted, &RandomGraph::selected, &RandomGraph::expanded,
            &RandomGraph::reduced, &RandomGraph::written, &RandomGraph::drawn,    &RandomGraph::reread};
        for (int made = 0, tries = 0; made < calls && tries < 20 * calls; ++tries) {
            GraphBuilder builder(m_graph);
            const size_t before = m_values.size();
            (this->*kSteps[below(std::size(kSteps))])(builder);
            if (builder.error()) m_values.resize(before);
            else made += m_values.size() > before;
        }
        std::vector<Argument> results;
        for (size_t i = 3; i < m_values.size(); ++i)
            if (i + 1 == m_values.size() || below(4) == 0) results.emplace_back(m_values[i]);
        m_graph.output(Argument(std::move(results)));
        return printText(m_module, {}).text;
    }

  private:
    uint64_t below(uint64_t bound) { return m_random.below(bound); }
    Value any(GraphBuilder& b) {
        return b.value(*m_values[m_values.size() - 1 - std::min(below(m_values.size()), below(m_values.size()))]);
    }
    /// One with at least so many dims and elements, or a null that makes the call fail.
    Value any(GraphBuilder& b, int64_t rank) {
        const Value value = any(b);
        if (value.rank() < rank) b.fail(invalidInput("too few dims"));
        return value;
    }
    void keep(const Value& value) {
        if (value && value.node()->type().tensor() && numel(value.sizes()).value() <= 20000)
            m_values.push_back(value.node());
    }
    int64_t dimOf(const Value& value) {
        return value.rank() == 0 ? 0 : static_cast<int64_t>(below(static_cast<uint64_t>(value.rank())));
    }
    Value fullLike(GraphBuilder& b, const Value& value, double number) {
        return full(b, below(3) == 0 ? SymDims{} : value.sizes(), Scalar(number), DType::F32, Device{});
    }

    void permute(GraphBuilder& b) {
        const Value x = any(b, 2);
        std::vector<int64_t> dims(static_cast<size_t>(x.rank())), back(dims.size());
        for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
        for (size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[below(i)]);
        for (size_t i = 0; i < dims.size(); ++i) back[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
        const Value y = cutaway::permute(x, dims);
        keep(below(2) ? cutaway::permute(y, below(3) ? back : dims) : y);
    }
    void view(GraphBuilder& b) {
        const Value x = any(b);
        const Value flat = b.call("aten.view.default", {x, Dims{-1}});
        keep(below(2) ? b.call("aten.view.default", {flat, Argument(x.sizes())}) : flat);
        if (below(3) == 0) keep(b.call("aten.view.default", {x, Argument(x.sizes())}));
    }
    void constant(GraphBuilder& b) {
        const double numbers[] = {0, 1, 1, 2, 0.5, -1};
        keep(full(b, any(b).sizes(), Scalar(numbers[below(std::size(numbers))]), DType::F32, Device{}));
    }
    void binary(GraphBuilder& b) {
        const char* const ops[] = {"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.maximum.default"};
        keep(b.call(ops[below(4)], {any(b), any(b)}));
    }
    void neutral(GraphBuilder& b) {
        const Value x = any(b);
        switch (below(4)) {
            case 0: return keep(b.call("aten.add.Tensor", {x, fullLike(b, x, 0)}));
            case 1: return keep(b.call("aten.sub.Tensor", {x, fullLike(b, x, 0)}));
            case 2: return keep(b.call("aten.mul.Tensor", {fullLike(b, x, 1), x}));
            default: return keep(b.call("aten.div.Tensor", {x, fullLike(b, x, 1)}));
        }
    }
    void scaled(GraphBuilder& b) {
        const double numbers[] = {1, 2, 0.5, -1};
        const char* const ops[] = {"aten.add.Tensor", "aten.mul.Tensor", "aten.div.Tensor", "aten.sub.Tensor"};
        keep(b.call(ops[below(4)], {any(b), numbers[below(4)]}));
    }
    void unary(GraphBuilder& b) {
        const char* const ops[] = {"aten.relu.default", "aten.tanh.default",  "aten.sigmoid.default",
                                   "aten.neg.default",  "aten.clone.default", "aten.alias.default"};
        keep(b.call(ops[below(std::size(ops))], {any(b)}));
    }
    void noop(GraphBuilder& b) {
        const Value x = any(b, 1);
        switch (below(7)) {
            case 0: return keep(b.call("aten.slice.Tensor", {x, dimOf(x), 0, kEnd}));
            case 1: return keep(b.call("aten.constant_pad_nd.default", {x, Argument(Dims(2, 0))}));
            case 2: return keep(b.call("aten.repeat.default", {x, Argument(Dims(static_cast<size_t>(x.rank()), 1))}));
            case 3: return keep(b.call("aten.cat.default", {Argument(std::vector<Argument>{x})}));
            case 4: return keep(b.call("aten.pow.Tensor_Scalar", {x, 1}));
            case 5: return keep(b.call("prims.convert_element_type.default", {x, DType::F32}));
            default: return keep(b.call("aten.copy.default", {x, x}));
        }
    }
    void slice(GraphBuilder& b) {
        const Value x = any(b, 1);
        const int64_t dim = dimOf(x), size = x.size(dim).value();
        keep(b.call("aten.slice.Tensor", {x, dim, static_cast<int64_t>(below(2)), size}));
        if (size > 0 && below(2))
            keep(b.call("aten.select.int", {x, dim, static_cast<int64_t>(below(static_cast<uint64_t>(size)))}));
    }
    void join(GraphBuilder& b) {
        const Value x = any(b, 1);
        const int64_t dim = dimOf(x);
        std::vector<Argument> items = {x};
        if (below(2)) items.emplace_back(any(b));
        const Value c = b.call("aten.cat.default", {Argument(items), dim});
        if (below(2)) return keep(c);
        keep(b.call("aten.cat.default",
                    {Argument(std::vector<Argument>{c, b.call("aten.slice.Tensor", {c, dim, 0, 1})}), dim}));
    }
    void pieces(GraphBuilder& b) {
        const Value x = any(b, 1);
        const int64_t dim = dimOf(x), size = x.size(dim).value();
        const Value split =
            b.call("aten.split_with_sizes.default", {x, Argument(Dims{size / 2, size - size / 2}), dim});
        if (!split) return;
        const Value first = split[0], second = split[1];
        if (below(3) == 0) keep(first);
        keep(b.call(
            "aten.cat.default",
            {Argument(below(4) ? std::vector<Argument>{first, second} : std::vector<Argument>{second, first}), dim}));
    }
    void softmax(GraphBuilder& b) {
        const Value x = any(b, 1);
        const Dims dims{dimOf(x)};
        const double numbers[] = {0.5, -2, 1};
        const OperandValue scale =
            below(3) ? OperandValue(numbers[below(3)]) : OperandValue(full(b, {}, Scalar(-1.5), DType::F32, Device{}));
        const Value s = below(4) ? below(2) ? x * scale : x / scale : x;
        const Value e = cutaway::unary("aten.exp.default", s - b.call("aten.amax.default", {s, Argument(dims), true}));
        keep(e / b.call("aten.sum.dim_IntList", {e, Argument(dims), true}));
    }
    void product(GraphBuilder& b) {
        const Value x = any(b, 2);
        if (x.rank() == 3) return keep(b.call("aten.bmm.default", {x, transposeLast(x)}));
        const Value p = b.call("aten.mm.default", {x, transposeLast(x)});
        keep(below(2) ? below(2) ? p + any(b) : any(b) + p : p);
    }
    void counted(GraphBuilder& b) {
        const Value x = any(b, 1);
        keep(b.call("aten.cumsum.default", {full(b, x.sizes(), Scalar(2.0), DType::F32, Device{}), dimOf(x)}));
    }
    void selected(GraphBuilder& b) {
        const int64_t rows = 3 + static_cast<int64_t>(below(3));
        const Value line =
            b.call("prims.iota.default", {rows},
                   {{"start", 0}, {"step", 1}, {"dtype", DType::I64}, {"device", Device{}}, {"requires_grad", false}});
        const Value selector =
            b.call("aten.view.default", {b.call("aten.remainder.Scalar", {line, 4}), Argument(Dims{rows, 1})});
        keep(b.call("aten.scatter.value", {full(b, {rows, 4}, Scalar(0.0), DType::F32, Device{}), 1, selector, 2.5}));
    }
    void expanded(GraphBuilder& b) {
        const Value x = any(b);
        SymDims sizes = x.sizes();
        for (SymInt& size : sizes)
            if (size == SymInt(1) && below(2)) size = 3;
        if (below(2)) sizes.insert(sizes.begin(), SymInt(2));
        keep(expand(x, sizes));
    }
    void reduced(GraphBuilder& b) {
        const Value x = any(b, 1);
        const Value wide =
            cutaway::unary("aten.relu.default",
                           expand(unsqueeze(b.call("aten.view.default", {x, Dims{-1}}), 1), {numel(x.sizes()), 700}));
        const Value part = b.call("aten.amax.default", {wide, Argument(Dims{static_cast<int64_t>(below(2))}), true});
        keep(part + b.call(below(2) ? "aten.max.default" : "aten.amax.default", {wide}));
    }
    void written(GraphBuilder& b) {
        const Value x = any(b, 1);
        const int64_t dim = dimOf(x);
        const Value base = below(2) ? x * 2 : x;
        const Value piece = b.call("aten.slice.Tensor", {base, dim, 0, 1});
        const Value once = b.call("aten.slice_scatter.default", {base, piece + 1, dim, 0, 1});
        keep(below(2) ? once
                      : b.call("aten.select_scatter.default",
                               {once, b.call("aten.select.int", {once, dim, 0}) * 2, dim, 0}));
        if (below(3) == 0) {
            const Value line = b.call(
                "prims.iota.default", {1},
                {{"start", 0}, {"step", 1}, {"dtype", DType::I64}, {"device", Device{}}, {"requires_grad", false}});
            keep(b.call("aten.index_put.default", {once, Argument(std::vector<Argument>{line}),
                                                   full(b, {}, Scalar(1.5), DType::F32, Device{}), below(2) == 0}));
        }
    }
    void drawn(GraphBuilder& b) {
        keep(b.call(below(2) ? "aten.rand.default" : "aten.randn.default", {Argument(any(b).sizes())},
                    {{"device", Device{}}, {"pin_memory", false}}));
    }
    void reread(GraphBuilder& b) {
        const Value bits = b.call("aten.view.dtype", {any(b), DType::I32});
        keep(b.call("aten.view.dtype", {bits, DType::F32}));
    }

    Random m_random;
    Module m_module;
    Graph& m_graph = m_module.graph();
    std::vector<Node*> m_values;  // the three inputs first
};

/// Off by default, and looking for what the graphs hold.
constexpr const char* kOptional[] = {"dce",
                                     "normalization_aten_pass",
                                     "split_cat_aten_pass=threshold_to_cat:2",
                                     "select_cat_aten_pass",
                                     "unbind_stack_aten_pass",
                                     "move_view_after_cat_aten_pass",
                                     "decompose_mm_pass",
                                     "batch_aten_add=min_fuse_set_size:2",
                                     "batch_aten_mul=min_fuse_set_size:2",
                                     "batch_aten_tanh=min_fuse_set_size:2",
                                     "batch_aten_relu=min_fuse_set_size:2",
                                     "batch_linear_post_grad=min_fuse_set_size:2"};

}  // namespace

class RandomGraphsTest : public QObject {
    Q_OBJECT

  private slots:
    void stepsKeepTheNumbers_data() {
        QTest::addColumn<int>("seed");
        QTest::addColumn<QString>("how");
        const int first = qEnvironmentVariableIntValue("CUTAWAY_SEED"),
                  count = qEnvironmentVariableIntValue("CUTAWAY_SEEDS");
        for (int seed = first; seed < first + (count ? count : 60); ++seed) {
            for (const char* how : {"inference", "training", "jvp", "optional passes"})
                QTest::addRow("seed %d, %s", seed, how) << seed << how;
        }
    }
    void stepsKeepTheNumbers() {
        QFETCH(int, seed);
        QFETCH(QString, how);
        const bool training = how == "training";
        const std::string text = RandomGraph(static_cast<uint64_t>(seed)).grown(18);
        QTemporaryDir folder;
        QFile file(folder.filePath("random.py"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text.c_str());
        file.close();
        Session session;
        const auto opened = session.open(file.fileName().toStdString());
        const auto print = qScopeGuard([&] {
            if (QTest::currentTestFailed()) std::fprintf(stderr, "%s\n", text.c_str());
        });  // QtTest cuts long messages
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        CompileRequest options;
        options.mode = modeOf(how.toStdString()).value_or(Mode::Inference);
        if (training) {
            auto wanting = std::make_shared<Module>(*session.state().input);
            QVERIFY(requireGradients(*wanting, {.inputs = {"x", "y", "z"}}));
            session.state().input = wanting;
            options.memoryBudget = std::array{1.0, 0.5, 0.2, 0.0}[static_cast<size_t>(seed % 4)];
        }
        if (how == "optional passes")
            for (const char* name : kOptional) options.enabledPasses.push_back(*parseOptionalPass(name));
        const auto run = session.compile(options);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto steps = session.steps(*run);
        QVERIFY(steps);
        for (const StepInfo& step : *steps)
            QVERIFY2(step.state != StepState::Failed, (step.name + ": " + step.error).c_str());
        for (const Step& step : session.state().runs[0].trace.steps) {
            const auto sound = verify(*step.after, {.types = true});
            QVERIFY2(sound, sound ? "" : (step.info.name + ": " + sound.error().text()).c_str());
        }
        const auto report = session.checkNumbers(*run);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY2(report->kept, qPrintable(testing::lostNumbers(*report)));
    }
};

CUTAWAY_SUITE(RandomGraphsTest)
#include "random_graphs_test.moc"
