// Training runs: the loss, gradients under their names, what is compared and what is refused.
#include <QRegularExpression>
#include <QtTest>

#include "cutaway/host.h"
#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "engine/session/session_state.h"
#include "tests/support/bytes.h"
#include "tests/support/suites.h"

using namespace cutaway;

class TrainingTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    void writeGraph(const QString& text) const {
        QFile file(m_folder.filePath("graph.py"));
        if (!file.open(QIODevice::WriteOnly) || file.write(text.toUtf8()) < 0) qFatal("cannot write");
    }

    /// Compiles the text for training with gradients by the inputs named, and runs it on `inputs`.
    struct Ran {
        std::optional<Error> error;
        RunReport report;
        std::map<std::string, Tensor> tensors;  // written
    };
    Ran run(const QString& text, const std::vector<std::string>& gradients, const NamedTensors& inputs,
            RunOptions options = {}) {
        writeGraph(text);
        Session session;
        if (const auto opened = session.open(path("graph.py")); !opened) return {opened.error(), {}, {}};
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = gradients;
        const auto compiled = session.compile(request);
        if (!compiled) return {compiled.error(), {}, {}};
        const auto steps = session.steps(*compiled);
        if (!steps->empty() && steps->back().state == StepState::Failed)
            return {invalidInput(steps->back().error), {}, {}};
        if (!inputs.empty()) {
            if (!writeSafeTensors(path("in.safetensors"), {inputs, {}})) qFatal("cannot write");
            options.inputsFile = path("in.safetensors");
        }
        options.gradientsFile = path("out.safetensors");
        const auto report = session.run(*compiled, options);
        if (!report) return {report.error(), {}, {}};
        Ran ran{{}, *report, {}};
        const auto written = readSafeTensors(options.gradientsFile);
        if (!written) qFatal("%s", written.error().text().c_str());
        for (const auto& [name, tensor] : written->tensors) ran.tensors.emplace(name, tensor.clone());
        return ran;
    }

  private slots:
    /// y = x * w: loss = mean(y^2); dw = 2 x^2 w / n. On both backends.
    void lossAndGradients() {
        const Tensor x = Tensor::full(DType::F32, {4}, Scalar(3.0)), w = Tensor::full(DType::F32, {4}, Scalar(0.5));
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            RunOptions options;
            options.backend = backend;
            const Ran ran =
                run("def forward(x: \"f32[4]\", w: \"f32[4]\"):\n    y = aten.mul.Tensor(x, w)\n    return (y,)\n",
                    {"w"}, {{"x", x}, {"w", w}}, options);
            QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
            QCOMPARE(ran.report.training->loss, 2.25);
            QVERIFY(ran.report.training->lossFrom.starts_with("the mean of squares"));
            QCOMPARE(ran.report.training->gradients.size(), size_t(1));
            QCOMPARE(ran.report.training->gradients[0].name, std::string("w"));
            QCOMPARE(testing::itemOf(ran.tensors.at("w"), 3), 2 * 9 * 0.5 / 4);
            QCOMPARE(testing::itemOf(ran.tensors.at("loss")), 2.25);
            QCOMPARE(testing::itemOf(ran.tensors.at("y"), 1), 1.5);
        }
    }

    /// What the forward saves lies where it was made until the backward has read it.
    void savedValuesAreHeldOnce() {
        constexpr int kLayers = 16;
        QString text = "def forward(x0: \"f32[4096, 256]\", w: \"f32[256, 256]\"):\n";
        for (int i = 0; i < kLayers; ++i)
            text += QString("    m%1 = aten.mm.default(x%1, w)\n    x%2 = aten.tanh.default(m%1)\n").arg(i).arg(i + 1);
        text += QString("    return (x%1,)\n").arg(kLayers);
        RunOptions compiled;
        compiled.backend = Backend::Cpu;
        const Ran ran = run(text, {"w"}, {}, compiled);
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        [[maybe_unused]] const int64_t held = ran.report.cost->peakBytes;
        const int64_t saved = ran.report.training->savedBytes;
        QVERIFY(saved >= int64_t{kLayers - 1} * 4096 * 256 * 4);
#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed
        QVERIFY2(held < saved + saved / 2, qPrintable(QString("%1 bytes, %2 saved").arg(held).arg(saved)));
#endif
        QVERIFY(ran.report.cost->arenaBytes >= saved);
    }

    /// Convolutions have channels last in both halves; what the caller gets keeps its strides, and no weight's gradient
    /// is copied for that.
    void layoutsOfWhatIsSaved() {
        const QString text =
            "def forward(self, x: \"f32[2, 3, 8, 8]\", w: \"f32[8, 3, 3, 3]\", v: \"f32[4, 8, 3, 3]\"):\n"
            "    a = torch.ops.aten.conv2d.default(x, w)\n"
            "    b = torch.ops.aten.sigmoid.default(a)\n"
            "    c = torch.ops.aten.conv2d.default(b, v)\n"
            "    e = torch.ops.aten.sigmoid.default(c)\n"
            "    d = torch.ops.aten.view.default(e, [2, 64])\n"
            "    return (d, c)\n";
        RunOptions compiled;
        compiled.backend = Backend::Cpu;
        const Ran plain = run(text, {"w", "v", "x"}, {}), fast = run(text, {"w", "v", "x"}, {}, compiled);
        for (const Ran* ran : {&plain, &fast}) QVERIFY2(!ran->error, ran->error ? ran->error->text().c_str() : "");
        QCOMPARE(plain.tensors.size(), fast.tensors.size());
        for (const auto& [name, tensor] : plain.tensors)
            QVERIFY2(compare(fast.tensors.at(name), tensor, {1e-4, 1e-5}).within, name.c_str());

        Session session;
        QVERIFY(session.open(path("graph.py")).has_value());
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = {"w", "v", "x"};
        const auto id = session.compile(request);
        QVERIFY(id.has_value());
        const auto found = session.state().run(*id);
        QVERIFY(found.has_value());
        const CompileTrace& trace = (*found)->trace;
        const Snapshot forward = trace.resultOf("forward"), backward = trace.resultOf("backward");
        const auto lastChannels = [](const Node& node) {
            const TensorType* type = node.type().tensor();
            return type && type->sizes.size() == 4 && type->strides[1] == SymInt(1) && type->sizes[1] != SymInt(1);
        };
        const std::vector<Argument> left = forward->graph().outputs();
        int saved = 0;
        for (size_t i = 0; i < left.size(); ++i) {
            const bool isSaved = forward->outputs[i].kind == OutputSpec::Kind::Saved;
            if (!isSaved) QVERIFY(!lastChannels(*left[i].node()));
            for (const Node* taken : backward->graph().placeholders())
                if (isSaved && taken->name() == forward->outputs[i].target) {
                    QVERIFY(taken->tensor().strides == left[i].node()->tensor().strides);
                    saved += lastChannels(*taken);
                }
        }
        QVERIFY(saved > 0);
        int gradients = 0;
        for (const Node& node : backward->graph().nodes())
            if (node.isCall("aten.convolution_backward.default")) ++gradients;
        QCOMPARE(gradients, 2);
        for (const Argument& result : backward->graph().outputs())
            if (const Node* node = result.node(); node && node->tensor().sizes[0] != SymInt(2))
                QVERIFY2(node->isCall("operator.getitem") && !lastChannels(*node), node->name().c_str());
        // Each rewrite can be stepped to, and the halves run as one graph wherever one stands.
        for (size_t i = 0; i < trace.steps.size(); ++i)
            for (int rewrite = 1; rewrite < trace.steps[i].info.rewrites; ++rewrite)
                QVERIFY(replayRewrites(trace.steps[i], trace, rewrite).has_value());
    }

    /// A returned number is the loss itself, and what is not floating has no part in it.
    void returnedNumber() {
        const Ran ran = run(
            "def forward(w: \"f32[3]\"):\n    s = aten.sum.default(w)\n    m = aten.argmax.default(w)\n    return (s, m)\n",
            {"w"}, {{"w", Tensor::full(DType::F32, {3}, Scalar(2.0))}});
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        QCOMPARE(ran.report.training->loss, 6.0);
        QCOMPARE(ran.report.training->lossFrom, std::string("the returned number"));
        QCOMPARE(testing::itemOf(ran.tensors.at("w"), 2), 1.0);
    }

    /// A value that is returned twice counts twice; views of inputs, and inputs themselves, have no gradient of their
    /// own.
    void outputsThatShare() {
        const Ran ran =
            run("def forward(x: \"f32[2, 3]\", w: \"f32[2, 3]\"):\n    y = aten.mul.Tensor(x, w)\n"
                "    t = aten.permute.default(x, [1, 0])\n    return (y, t, y, x)\n",
                {"w"},
                {{"x", Tensor::full(DType::F32, {2, 3}, Scalar(1.0))},
                 {"w", Tensor::full(DType::F32, {2, 3}, Scalar(3.0))}});
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        QCOMPARE(ran.report.training->loss, 9.0 + 1 + 9 + 1);
        QCOMPARE(testing::itemOf(ran.tensors.at("w")), 2 * 2 * 3.0 / 6);
    }

    /// The gradient of a returned input goes to it directly.
    void returnedInputs() {
        const Ran ran = run("def forward(w: \"f32[2]\"):\n    y = aten.mul.Tensor(w, 3.0)\n    return (y, w)\n", {"w"},
                            {{"w", Tensor::full(DType::F32, {2}, Scalar(1.0))}});
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        QCOMPARE(ran.report.training->loss, 10.0);
        QCOMPARE(testing::itemOf(ran.tensors.at("w")), 2 * 9.0 / 2 + 2 * 1.0 / 2);
    }

    /// If the gradient of a mask is wanted, attention does not become the kernel that gives masks none, although the
    /// program was exported without gradients, and although other calls stand between mask and attention.
    void attentionByItsMask() {
        const Ran ran =
            run("def forward(q: \"f32[1, 2, 4, 8]\", m: \"f32[2, 2]\"):\n"
                "    r = aten.repeat.default(m, [2, 2])\n    u = aten.unflatten.int(r, 0, [1, 4])\n"
                "    v = aten.select.int(u, 0, 0)\n"
                "    y = aten.scaled_dot_product_attention.default(q, q, q, v)\n    return (y,)\n",
                {"m"}, {});
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        QVERIFY(ran.tensors.contains("m"));
        QVERIFY(testing::itemOf(ran.tensors.at("m")) != 0);
    }

    /// An input that an expansion returns unchanged, beside a value that has a gradient, gets no gradient by that.
    void inputsBesideParameters() {
        const Ran ran =
            run("def forward(w: \"f32[4]\", x: \"f32[4]\"):\n    b = aten.broadcast_tensors.default([w, x])\n"
                "    b0 = b[0]\n    b1 = b[1]\n    y = aten.mul.Tensor(b0, b1)\n    return (y,)\n",
                {"w"}, {});
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        QVERIFY(ran.tensors.contains("w"));
        QVERIFY(!ran.tensors.contains("x"));
    }

    /// The backward reads a buffer as it was, though the forward has written to it at its end. Its new value is told.
    void writtenInputs() {
        const QString text =
            "def forward(w: \"f32[2]\", b: \"f32[2]\"):\n    y = aten.mul.Tensor(w, b)\n"
            "    add_ = aten.add_.Tensor(b, 100.0)\n    return (y,)\n";
        const NamedTensors inputs = {{"w", Tensor::full(DType::F32, {2}, Scalar(1.0))},
                                     {"b", Tensor::full(DType::F32, {2}, Scalar(2.0))}};
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            RunOptions options;
            options.backend = backend;
            options.repeat = 3;  // each on the inputs as given
            const Ran ran = run(text, {"w"}, inputs, options);
            QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
            QCOMPARE(testing::itemOf(ran.tensors.at("w")), 2 * 2.0 * 2.0 / 2);
            QCOMPARE(ran.report.written.size(), size_t{1});
            QCOMPARE(ran.report.written[0].name, std::string("b"));
            QCOMPARE(testing::itemOf(ran.tensors.at("b"), 1), 102.0);
            for (const double value : {102.0, 103.0}) {
                options.expectGradientsFile = path("expected.safetensors");
                if (!writeSafeTensors(options.expectGradientsFile,
                                      {{{"b", Tensor::full(DType::F32, {2}, Scalar(value))}}, {}}))
                    qFatal("cannot write");
                const Ran compared = run(text, {"w"}, inputs, options);
                QVERIFY2(!compared.error, compared.error ? compared.error->text().c_str() : "");
                QVERIFY(compared.report.written[0].compared);
                QCOMPARE(compared.report.matches, value == 102.0);
            }
        }
    }

    /// The new value of an input that has a gradient, too, does not take its name.
    void writtenInputWithGradient() {
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            RunOptions options;
            options.backend = backend;
            const Ran ran = run(
                "def forward(w: \"f32[2]\", x: \"f32[2]\"):\n    y = aten.mul.Tensor(x, w)\n"
                "    copy_ = aten.copy_.default(w, y)\n    z = aten.mul.Tensor(y, 3.0)\n    return (z,)\n",
                {"w"},
                {{"w", Tensor::full(DType::F32, {2}, Scalar(2.0))}, {"x", Tensor::full(DType::F32, {2}, Scalar(5.0))}},
                options);
            QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
            QCOMPARE(ran.report.written.size(), size_t{1});
            QCOMPARE(ran.report.written[0].name, std::string("w.new"));
            QCOMPARE(testing::itemOf(ran.tensors.at("w.new")), 10.0);
            QCOMPARE(testing::itemOf(ran.tensors.at("w")), 2 * 30.0 * 15.0 / 2);
        }
    }

    /// Inference runs of both backends write to inputs, too; what is written is compared by its name.
    void writtenInInference_data() {
        QTest::addColumn<int>("backend");
        QTest::newRow("reference") << static_cast<int>(Backend::Reference);
        QTest::newRow("cpu") << static_cast<int>(Backend::Cpu);
    }
    void writtenInInference() {
        QFETCH(int, backend);
        writeGraph(
            "def forward(x: \"f32[2]\", b: \"f32[2]\"):\n    y = aten.mul.Tensor(x, b)\n"
            "    add_ = aten.add_.Tensor(b, 100.0)\n    return (y,)\n");
        Session session;
        QVERIFY(session.open(path("graph.py")));
        const auto compiled = session.compile({});
        QVERIFY(compiled);
        RunOptions options;
        options.backend = static_cast<Backend>(backend);
        options.inputsFile = path("in.safetensors");
        options.expectFile = path("expected.safetensors");
        const Tensor two = Tensor::full(DType::F32, {2}, Scalar(2.0));
        QVERIFY(writeSafeTensors(options.inputsFile, {{{"x", two}, {"b", two}}, {}}));
        for (const double value : {102.0, 103.0}) {
            const NamedTensors expected = {{"y", Tensor::full(DType::F32, {2}, Scalar(4.0))},
                                           {"b", Tensor::full(DType::F32, {2}, Scalar(value))}};
            QVERIFY(writeSafeTensors(options.expectFile, {expected, {}}));
            const auto report = session.run(*compiled, options);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QCOMPARE(report->written.size(), size_t{1});
            QVERIFY(report->outputs[0].within);
            QCOMPARE(report->written[0].mean, 102.0);
            QCOMPARE(report->written[0].within, value == 102.0);
            QCOMPARE(report->matches, value == 102.0);
        }
    }

    /// Both halves are one program, which holds a weight that both read once.
    void oneProgram() {
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/tiny_transformer.pt2"));
        CompileRequest request;
        request.mode = Mode::Training;
        const auto compiled = session.compile(request);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        const auto host = hostTexts(session, *compiled);
        QVERIFY2(host, host ? "" : host.error().text().c_str());
        const QString text = QString::fromStdString(host->program);
        QCOMPARE(text.count("\nfunction forward("), 1);
        QCOMPARE(text.count("\nfunction backward("), 1);
        QVERIFY(
            QRegularExpression("function backward\\(.*\\bconstant = primals_\\d+ of forward").match(text).hasMatch());
        QVERIFY(QRegularExpression("function backward\\(.* = result \\d+ of forward").match(text).hasMatch());
        QVERIFY(QString::fromStdString(host->noSource).startsWith("a program with a backward has no C interface"));
        RunOptions options;
        options.backend = Backend::Cpu;
        const auto report = session.run(*compiled, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        int64_t weights = 0;
        for (const OutputReport& gradient : report->training->gradients) {
            int64_t elements = 1;
            for (const QString& size : QString::fromStdString(gradient.type).section('[', 1).chopped(1).split(", "))
                elements *= size.toLongLong();
            weights += 4 * elements;
        }
        QVERIFY(report->cost && report->cost->weightsBytes > 0);
        QVERIFY2(report->cost->weightsBytes <= weights + 1024, qPrintable(QString::number(report->cost->weightsBytes)));
    }

    /// Sizes are handed over as numbers: one program for all of them.
    void sizesAcrossTheBoundary() {
        writeGraph(
            "def forward(x: \"f32[s0, 4]\", w: \"f32[4, 4]\"):\n    y = aten.mm.default(x, w)\n"
            "    z = aten.mean.dim(y, [0])\n    return (z,)\n");
        Session session;
        QVERIFY(session.open(path("graph.py")));
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = {"x", "w"};
        const auto compiled = session.compile(request);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        std::string library;
        for (const int64_t rows : {2, 5, 7}) {
            RunOptions options;
            options.backend = Backend::Cpu;
            options.inputsFile = path("in.safetensors");
            QVERIFY(writeSafeTensors(options.inputsFile, {{{"x", Tensor::full(DType::F32, {rows, 4}, Scalar(1.0))},
                                                           {"w", Tensor::full(DType::F32, {4, 4}, Scalar(0.5))}},
                                                          {}}));
            const auto report = session.run(*compiled, options);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QCOMPARE(report->training->loss, 4.0);  // each of z is 2
            // d loss / d z is 1, and z is a mean over rows of x w
            QCOMPARE(static_cast<float>(report->training->gradients[0].mean), 2.0F / static_cast<float>(rows));
            QCOMPARE(static_cast<float>(report->training->gradients[1].mean) + 1.0F,
                     2.0F);  // a sum of rounded quotients
            const auto build = session.build(*compiled, Target::Cpu);
            QVERIFY(build);
            if (!library.empty()) QCOMPARE(build->library, library);
            library = build->library;
        }
    }

    void comparing() {
        const QString text =
            "def forward(x: \"f32[4]\", w: \"f32[4]\"):\n    y = aten.mul.Tensor(x, w)\n    return (y,)\n";
        const NamedTensors inputs = {{"x", Tensor::full(DType::F32, {4}, Scalar(3.0))},
                                     {"w", Tensor::full(DType::F32, {4}, Scalar(0.5))}};
        RunOptions options;
        options.expectGradientsFile = path("expected.safetensors");
        const auto expect = [&](NamedTensors tensors) {
            if (!writeSafeTensors(options.expectGradientsFile, {std::move(tensors), {}})) qFatal("cannot write");
            return run(text, {"w"}, inputs, options);
        };
        const Ran good = expect({{"w", Tensor::full(DType::F32, {4}, Scalar(2.25))}});
        QVERIFY2(!good.error, good.error ? good.error->text().c_str() : "");
        QVERIFY(good.report.compared && good.report.matches && good.report.training->gradients[0].within);
        const Ran bad =
            expect({{"w", Tensor::full(DType::F32, {4}, Scalar(2.5))}, {"loss", Tensor::scalar(DType::F32, 2.25)}});
        QVERIFY(!bad.error && bad.report.compared && !bad.report.matches);
        QVERIFY(!bad.report.training->gradients[0].within);
        const Ran loss = expect({{"loss", Tensor::scalar(DType::F32, 7.0)}});
        QVERIFY(!loss.error && !loss.report.matches);
        const Ran stranger = expect({{"v", Tensor::scalar(DType::F32, 7.0)}});
        QVERIFY(stranger.error);
        QCOMPARE(stranger.error->message,
                 std::string("the file has 'v', which is neither a result, a gradient nor a new value of this run"));
        QCOMPARE(stranger.error->notes[0], std::string("there are: loss, w"));
    }

    void refusals_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        QTest::newRow("complex result")
            << "def forward(w: \"f32[2]\"):\n    y = aten.fft_fft.default(w)\n    return (y,)\n"
            << "a result is complex";
        QTest::newRow("nothing depends on it")
            << "def forward(w: \"f32[2]\"):\n    y = aten.ones.default([2])\n    return (y,)\n"
            << "no returned value depends on 'w'";
    }
    void refusals() {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const Ran ran = run(text, {"w"}, {});
        QVERIFY(ran.error);
        QVERIFY2(ran.error->text().find(says.toStdString()) != std::string::npos, ran.error->text().c_str());
    }

    /// Only training computes gradients.
    void inferenceHasNone() {
        Session session;
        QVERIFY(run("def forward(w: \"f32[2]\"):\n    y = aten.sin.default(w)\n    return (y,)\n", {"w"}, {}).error ==
                std::nullopt);
        QVERIFY(session.open(path("graph.py")));
        QVERIFY(session.compile({}));
        RunOptions options;
        options.gradientsFile = path("none.safetensors");
        const auto report = session.run(0, options);
        QVERIFY(!report && report.error().message.find("--mode training") != std::string::npos);
    }

    /// What is measured of saved values is what their types say.
    void savedBytes() {
        const Ran ran =
            run("def forward(x: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n    m = aten.mm.default(x, w)\n"
                "    y = aten.tanh.default(m)\n    return (y,)\n",
                {"w"}, {});
        QVERIFY2(!ran.error, ran.error ? ran.error->text().c_str() : "");
        QCOMPARE(ran.report.training->estimatedSavedBytes, int64_t(128));  // tanh, and x transposed
        QCOMPARE(ran.report.training->savedBytes, int64_t(128));
        QVERIFY(ran.report.training->heldBytes >= 128);
    }
};

CUTAWAY_SUITE(TrainingTest)
#include "training_test.moc"
