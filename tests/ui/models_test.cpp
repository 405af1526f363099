// Item models without windows: the model tester watches every change, printed trees are compared.
#include <QSignalSpy>
#include <QtTest>

#include "cutaway/node_query.h"
#include "tests/support/suites.h"
#include "tests/ui/fake_source.h"
#include "tests/ui/tree_text.h"
#include "ui/models/explain_model.h"
#include "ui/models/kernels_model.h"
#include "ui/models/log_model.h"
#include "ui/models/node_model.h"
#include "ui/models/results_model.h"
#include "ui/models/steps_model.h"
#include "ui/models/text_model.h"
#include "ui/models/units.h"
#include "ui/models/words.h"
#include "ui/session/session_controller.h"

using namespace cutaway;
using namespace cutaway::ui;
using cutaway::testing::sampleSteps;
using cutaway::testing::treeText;

class ModelsTest : public QObject {
    Q_OBJECT

    static GraphText graphText(const QStringList& lines, const std::vector<uint32_t>& nodes) {
        GraphText text;
        text.text = lines.join('\n').toStdString();
        for (uint32_t node : nodes) text.lineNodes.push_back(node ? static_cast<NodeKey>(node) : NodeKey::None);
        return text;
    }
    static QString printed(const QVector<DiffLine>& lines) {
        const auto marked = [](const QString& text, const QVector<MarkedRange>& marks) {
            QString result = text;
            for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
                result.insert(mark->start + mark->length, ']');
                result.insert(mark->start, '[');
            }
            return result;
        };
        QString text;
        for (const DiffLine& line : lines) {
            if (line.kind == DiffLine::Kind::Same) text += "  " + line.after + '\n';
            if (line.kind == DiffLine::Kind::Added) text += "+ " + line.after + '\n';
            if (line.kind == DiffLine::Kind::Removed) text += "- " + line.before + '\n';
            if (line.kind == DiffLine::Kind::Edited)
                text +=
                    "~ " + marked(line.before, line.beforeMarks) + "\n~ " + marked(line.after, line.afterMarks) + '\n';
        }
        return text;
    }

  private slots:
    /// Nodes of two graphs may have one id.
    void nodesOfBodiesHaveTheirOwnNames() {
        auto graph = std::make_shared<UnionGraph>();
        for (const uint32_t number : {0u, 7u}) {
            auto& node = graph->nodes.emplace_back();
            node.info.id = nodeKey(number, static_cast<NodeId>(3));
            node.info.name = number ? "in_body" : "in_main";
        }
        const auto nodes = std::make_shared<const NodeIndex>(graph);
        QCOMPARE(nameIn(nodes, nodeKey(0, static_cast<NodeId>(3))), "in_main");
        QCOMPARE(nameIn(nodes, nodeKey(7, static_cast<NodeId>(3))), "in_body");
    }

    void sourceFramesTellTheirEnd_data() {
        QTest::addColumn<QString>("frame");
        QTest::addColumn<QString>("function");
        QTest::addColumn<QString>("place");
        QTest::newRow("a frame") << "File \"site-packages/torch/nn/modules/linear.py\", line 125, in forward"
                                 << "forward"
                                 << "modules/linear.py:125";
        QTest::newRow("with its line of code") << "File \"models.py\", line 39, in forward: return self.m(x)"
                                               << "forward"
                                               << "models.py:39";
        QTest::newRow("without a function") << "File \"a/b/c.py\", line 7"
                                            << ""
                                            << "b/c.py:7";
        QTest::newRow("something else") << "made by hand"
                                        << ""
                                        << "made by hand";
    }
    void sourceFramesTellTheirEnd() {
        QFETCH(QString, frame);
        QFETCH(QString, function);
        QFETCH(QString, place);
        NodeFacts facts;
        facts.after.emplace();
        facts.after->node.name = "y";
        facts.after->frames = {frame.toStdString()};
        NodeModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setFacts(facts);
        const QModelIndex source = model.index(model.rowCount() - 1, 0), row = model.index(0, 0, source);
        QCOMPARE(source.data().toString(), "Source");
        QCOMPARE(source.siblingAtColumn(1).data().toString(), place);
        QCOMPARE(row.data().toString(), function);
        QCOMPARE(row.siblingAtColumn(1).data().toString(), place);
        QCOMPARE(row.siblingAtColumn(1).data(Qt::ToolTipRole).toString(), frame);
    }

    /// What a constant is made from, how, and what its numbers are like.
    void aConstantIsTold() {
        NodeFacts facts;
        facts.after.emplace();
        facts.after->node.name = "w";
        facts.after->constant = ConstantInfo{{{"conv.weight", "f32[4]"}, {"bn.bias", "f32[4]"}},
                                             {"mul: \"f32[4]\" = aten.mul.Tensor(conv_weight, bn_bias)"},
                                             2048,
                                             false};
        NodeModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setFacts(facts);
        const auto item = [&](const QString& label) {
            for (int row = 0; row < model.rowCount(); ++row)
                if (model.index(row, 0).data() == label) return model.index(row, 0);
            return QModelIndex();
        };
        const auto rows = [&](const QModelIndex& parent) {
            QStringList out;
            for (int row = 0; row < model.rowCount(parent); ++row)
                out << model.index(row, 0, parent).data().toString() + ": " +
                           model.index(row, 1, parent).data().toString();
            return out.join('\n');
        };
        QCOMPARE(item("Constant").siblingAtColumn(1).data().toString(), "2.0 KiB, from 2 tensors");
        QCOMPARE(rows(item("Constant")),
                 "Computed from: conv.weight  f32[4]\nComputed from: bn.bias  f32[4]\n"
                 "Computed as: mul: \"f32[4]\" = aten.mul.Tensor(conv_weight, bn_bias)");
        QVERIFY(!item("Values").isValid());
        facts.values = ValueSummary{8, 2, 1, -1, 3, 0.5, {1, 0, 6}, {-1, 0}, true, {}};
        facts.values->sources = {{4, 0, 0, -2, 6, 1.5, {}, {-2, 6, 1, 1}, false, {}}};  // of the first
        model.setFacts(facts);
        QCOMPARE(item("Values").siblingAtColumn(1).data().toString(), "-1 to 3");
        QCOMPARE(rows(item("Values")),
                 QString::fromUtf8("Min: -1\nMax: 3\nMean: 0.5\nZeros: 25.0 %\nNot finite: 1\nHistogram: ▂ █\n"
                                   "First: -1, 0, …\nData: made up: the file has none"));
        // Beside them those of what it is made from.
        const QModelIndex source = model.index(0, 0, item("Constant"));
        QCOMPARE(source.siblingAtColumn(1).data().toString(), "conv.weight  f32[4]  -2 to 6");
        QCOMPARE(rows(source), "Min: -2\nMax: 6\nMean: 1.5\nZeros: 0.0 %\nFirst: -2, 6, 1, 1");
        QCOMPARE(model.rowCount(model.index(1, 0, item("Constant"))), 0);
    }

    void foldersThatAllPathsShareAreFound_data() {
        QTest::addColumn<QStringList>("paths");
        QTest::addColumn<QString>("shared");
        QTest::newRow("none") << QStringList{"one.py", "two.py"} << "";
        QTest::newRow("not half a name") << QStringList{"run/one.py", "run/one.txt"} << "run/";
        QTest::newRow("not half a folder") << QStringList{"run/model_0/a.py", "run/model_1/a.py"} << "run/";
        QTest::newRow("several") << QStringList{"a/b/c", "a/b/d/e", "a/b/c"} << "a/b/";
        QTest::newRow("one path") << QStringList{"a/b/c"} << "a/b/";
        QTest::newRow("nothing") << QStringList{} << "";
    }
    void foldersThatAllPathsShareAreFound() {
        QFETCH(QStringList, paths);
        QTEST(sharedFolders(paths), "shared");
    }

    void textsAreMatchedByNode_data() {
        QTest::addColumn<QStringList>("before");
        QTest::addColumn<QList<int>>("beforeNodes");
        QTest::addColumn<QStringList>("after");
        QTest::addColumn<QList<int>>("afterNodes");
        QTest::addColumn<QString>("expected");
        QTest::newRow("equal") << QStringList{"def forward(x):", "    y = relu(x)"} << QList<int>{0, 1}
                               << QStringList{"def forward(x):", "    y = relu(x)"} << QList<int>{0, 1}
                               << "  def forward(x):\n      y = relu(x)\n";
        QTest::newRow("a renamed node is one edited line")
            << QStringList{"a = relu(x)"} << QList<int>{1} << QStringList{"b = relu(x)"} << QList<int>{1}
            << "~ [a] = relu(x)\n~ [b] = relu(x)\n";
        QTest::newRow("another node of the same text is not the same line")
            << QStringList{"a = relu(x)"} << QList<int>{1} << QStringList{"a = relu(x)"} << QList<int>{2}
            << "- a = relu(x)\n+ a = relu(x)\n";
        QTest::newRow("replaced") << QStringList{"m = mm(x, t)", "y = add(m, b)", "z = sin(y)"} << QList<int>{1, 2, 3}
                                  << QStringList{"y = addmm(b, x, t)", "z = sin(y)"} << QList<int>{4, 3}
                                  << "- m = mm(x, t)\n- y = add(m, b)\n+ y = addmm(b, x, t)\n  z = sin(y)\n";
        QTest::newRow("signature changes")
            << QStringList{"def forward(x, y):", "    return (x,)"} << QList<int>{0, 0}
            << QStringList{"def forward(x):", "    return (x, x)"} << QList<int>{0, 0}
            << "~ def forward(x[, y]):\n~ def forward(x):\n~     return (x,)\n~     return (x, [x])\n";
        QTest::newRow("from nothing") << QStringList{} << QList<int>{} << QStringList{"a = b"} << QList<int>{1}
                                      << "+ a = b\n";
    }
    void textsAreMatchedByNode() {
        QFETCH(QStringList, before);
        QFETCH(QList<int>, beforeNodes);
        QFETCH(QStringList, after);
        QFETCH(QList<int>, afterNodes);
        const auto ids = [](const QList<int>& list) { return std::vector<uint32_t>(list.begin(), list.end()); };
        const GraphText old = graphText(before, ids(beforeNodes)), fresh = graphText(after, ids(afterNodes));
        QTEST(printed(diffTexts(old, fresh)), "expected");
        for (const GraphText* text : {&old, &fresh})
            QCOMPARE(printed(linesOf(*text)), printed(diffTexts(*text, *text)));
    }

    void aMovedLineIsRemovedAndAdded() {
        const auto lines = diffTexts(graphText({"a", "b", "c"}, {1, 2, 3}), graphText({"b", "c", "a"}, {2, 3, 1}));
        QCOMPARE(printed(lines), "- a\n  b\n  c\n+ a\n");
    }

    void textModelFoldsAndUnfolds() {
        QStringList lines;
        std::vector<uint32_t> nodes;
        for (int i = 0; i < 20; ++i) {
            lines << QString("n%1 = op()").arg(i);
            nodes.push_back(static_cast<uint32_t>(i + 1));
        }
        QStringList changed = lines;
        changed[10] = "n10 = other()";
        TextModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setLines(diffTexts(graphText(lines, nodes), graphText(changed, nodes)));
        QCOMPARE(treeText(model),
                 " |  |  | … 7 equal lines\n"
                 "8 | 8 |  | n7 = op()\n"
                 "9 | 9 |  | n8 = op()\n"
                 "10 | 10 |  | n9 = op()\n"
                 "11 |  | − | n10 = op()\n"
                 " | 11 | + | n10 = other()\n"
                 "12 | 12 |  | n11 = op()\n"
                 "13 | 13 |  | n12 = op()\n"
                 "14 | 14 |  | n13 = op()\n"
                 " |  |  | … 6 equal lines\n");
        QCOMPARE(model.rowOf(static_cast<NodeKey>(11)), 4);
        QCOMPARE(model.nextChange(0), 4);
        QCOMPARE(model.plainText(5), "+n10 = other()");
        model.unfold(0);
        QCOMPARE(model.rowCount(), 16);
        model.setFolded(false);
        QCOMPARE(model.rowCount(), 21);
        model.setLayout(TextModel::Layout::SideBySide);
        QCOMPARE(model.rowCount(), 20);
        QCOMPARE(treeText(model).section('\n', 10, 10), "11 | n10 = op() | 11 | n10 = other()");
        QCOMPARE(model.index(10, 3).data(TextModel::MarksRole).value<QVector<MarkedRange>>(),
                 (QVector<MarkedRange>{{6, 5}}));
    }

    void nodeFactsShowBeforeAndAfter() {
        NodeDetails before, after;
        before.node.name = after.node.name = "y";
        before.node.op = "aten.add.Tensor";
        after.node.op = "aten.addmm.default";
        before.node.type = "f32[8]";
        after.node.type = "bf16[8]";
        before.tensor = {{"dtype", "f32"}, {"strides", "[1]"}};
        after.tensor = {{"dtype", "bf16"}};
        after.arguments = {{"self", "b"}, {"mat1", "x"}};
        after.node.inputs = {static_cast<NodeKey>(3), static_cast<NodeKey>(9)};
        after.history = {{-1, "read from the file", {}}, {0, "edited", {static_cast<NodeKey>(3)}}};
        after.frames = {"model.py:12 in forward: y = m + b"};
        NodeFacts facts;
        facts.before = before;
        facts.after = after;
        UnionGraph graph;
        graph.nodes.push_back({});
        graph.nodes[0].info.id = static_cast<NodeKey>(3);
        graph.nodes[0].info.name = "b";
        facts.nodes = std::make_shared<const NodeIndex>(std::make_shared<const UnionGraph>(std::move(graph)));
        facts.steps.resize(1);
        facts.steps[0].name = "fuse_bias_add";
        NodeModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setFacts(facts);
        QCOMPARE(treeText(model),
                 "Node | y\n"
                 "  Op | aten.add.Tensor → aten.addmm.default\n"
                 "  Part | forward\n"
                 "Result | f32[8] → bf16[8]\n"
                 "  dtype | f32 → bf16\n"
                 "  strides | [1]\n"
                 "Arguments | 2\n"
                 "  self | b\n"
                 "  mat1 | x\n"
                 "Inputs | 2\n"
                 "  b\n"
                 "  %9\n"
                 "Users | none\n"
                 "History | 2 events\n"
                 "  as opened | read from the file\n"
                 "  fuse_bias_add | edited\n"
                 "    b\n"
                 "Source | model.py:12 in forward: y = m + b\n"
                 "   | model.py:12 in forward: y = m + b\n");
        facts.before.reset();
        model.setFacts(facts);
        QVERIFY(treeText(model).contains("State | added in this step"));
        model.clear();
        QCOMPARE(model.rowCount(), 0);
    }

    void problemsHaveThreeParts() {
        LogModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        Error error =
            unsupported("aten.foo.default is not known", "graph main, line 3", {"Register it with a plugin."});
        model.append(entryOf(error, "Opening a.pt2"));
        model.append(entryOf({ErrorCode::Cancelled, "stopped", "", {}}, "Compiling"));
        QCOMPARE(
            treeText(model),
            "Opening a.pt2: aten.foo.default is not known | graph main, line 3 | Register it with a plugin.\nCompiling: cancelled\n");
        QCOMPARE(model.at(1).level, LogEntry::Level::Note);
    }

    void resultsAreTables() {
        OutputsModel outputs;
        QAbstractItemModelTester outputTester(&outputs, cutaway::testing::kFatal);
        OutputReport good{"out0", "f32[2]", -1, 1, 0.5, 0, true, true, 1e-7, 0, {}, ""},
            bad{"out1", "f32[2]", 0, 0, 0, 2, true, false, 3, 0, {}, "2 of 2 elements differ"},
            alone{"out2", "i64[]", 4, 4, 4, 0, false, false, 0, 0, {}, ""};
        outputs.setOutputs({good, bad, alone}, {OutputReport{"b.mean", "f32[1]"}}, {OutputReport{"w", "f32[1]"}});
        QCOMPARE(treeText(outputs),
                 "out0 | f32[2] | -1 | 1 | 0.5 | 0 | 1e-07 | ✓ within tolerance\n"
                 "out1 | f32[2] | 0 | 0 | 0 | 2 | 3 | ✗ 2 of 2 elements differ\n"
                 "out2 | i64[] | 4 | 4 | 4 | 0 |  | not compared\n"
                 "b.mean (new) | f32[1] | 0 | 0 | 0 | 0 |  | not compared\n"
                 "w.grad | f32[1] | 0 | 0 | 0 | 0 |  | not compared\n");
        KernelsModel kernels;
        QAbstractItemModelTester kernelTester(&kernels, cutaway::testing::kFatal);
        KernelInfo first, second;
        first.name = "k0";
        first.kind = "pointwise";
        first.nodes = {static_cast<NodeKey>(4)};
        first.bytesRead = 2048;
        first.bytesWritten = 3 << 20;
        first.flops = 1500;
        first.microseconds = 30;
        second.name = "k1";
        second.kind = "reference: aten.sort";
        second.microseconds = 10;
        kernels.setKernels({first, second});
        QCOMPARE(treeText(kernels),
                 "k0 | 30.0 µs | 75.0 % | pointwise | 1 | 2.0 KiB | 3.0 MiB | 1.5 k\n"
                 "k1 | 10.0 µs | 25.0 % | reference: aten.sort | 0 | 0 B | 0 B\n");
        QCOMPARE(kernels.rowOf(static_cast<NodeKey>(4)), 0);
        QCOMPARE(kernels.rowOf(static_cast<NodeKey>(5)), -1);
    }

    void quantitiesAreWrittenInOneWay_data() {
        QTest::addColumn<QString>("said");
        QTest::addColumn<QString>("expected");
        QTest::newRow("count") << countText(640) << "640";
        QTest::newRow("thousands") << countText(1500) << "1.5 k";
        QTest::newRow("three digits tell enough") << countText(123456) << "123 k";
        QTest::newRow("no time") << durationText(0) << "0 µs";
        QTest::newRow("microseconds") << durationText(0.25) << "250 µs";
        QTest::newRow("milliseconds") << durationText(14) << "14.0 ms";
        QTest::newRow("seconds") << durationText(2500) << "2.5 s";
        QTest::newRow("share") << shareText(0.125) << "12.5 %";
    }
    void quantitiesAreWrittenInOneWay() {
        QFETCH(QString, said);
        QTEST(said, "expected");
    }

    void numbersAreReadAsTyped_data() {
        QTest::addColumn<QString>("locale");
        QTest::addColumn<double>("number");  // -1: none
        QTest::addColumn<QString>("typed");
        QTest::newRow("point") << "en_US" << 0.001 << " 0.001 ";
        QTest::newRow("exponent") << "en_US" << 0.001 << "1e-3";
        QTest::newRow("point where commas are usual") << "de_DE" << 0.001 << "0.001";
        QTest::newRow("comma") << "de_DE" << 0.001 << "0,001";
        QTest::newRow("comma and exponent") << "de_DE" << 0.0025 << "2,5e-3";
        QTest::newRow("a comma that parts thousands") << "en_US" << -1.0 << "1,000";
        QTest::newRow("nothing") << "de_DE" << -1.0 << "";
        QTest::newRow("a word") << "de_DE" << -1.0 << "small";
        QTest::newRow("below 0") << "de_DE" << -1.0 << "-0,5";
        QTest::newRow("without end") << "en_US" << -1.0 << "inf";
        QTest::newRow("no number") << "en_US" << -1.0 << "nan";
    }
    void numbersAreReadAsTyped() {
        QFETCH(QString, locale);
        QFETCH(QString, typed);
        const QLocale before;
        QLocale::setDefault(QLocale(locale));
        const double read = typedNumber(typed).value_or(-1);
        QLocale::setDefault(before);
        QTEST(read, "number");
    }

    /// In every table: on the right, below a header on the right, in digits of one width.
    void numbersStandBelowEachOther() {
        StepsModel steps;
        steps.setRun(1, sampleSteps());
        KernelsModel kernels;
        kernels.setKernels({KernelInfo{}});
        OutputsModel outputs;
        outputs.setOutputs({OutputReport{}});
        ExplainModel explain;
        Explained explained;
        explained.pass = "p";
        explained.uses = {{"rule", 3, 1, 0.5, 0}};
        explain.setExplained(explained);
        const auto check = [](const QAbstractItemModel& model, const QModelIndex& first, const QSet<int>& numbers) {
            for (int column = 0; column < model.columnCount(); ++column) {
                const QModelIndex at = first.siblingAtColumn(column);
                const bool right = Qt::Alignment(at.data(Qt::TextAlignmentRole).toInt()).testFlag(Qt::AlignRight);
                const bool headerRight =
                    Qt::Alignment(model.headerData(column, Qt::Horizontal, Qt::TextAlignmentRole).toInt())
                        .testFlag(Qt::AlignRight);
                const QString name = QString(model.metaObject()->className()) + ' ' +
                                     model.headerData(column, Qt::Horizontal).toString();
                QVERIFY2(right == numbers.contains(column) && headerRight == right, qPrintable(name));
                if (!right) continue;
                // Measured: some fonts of one width do not say that they are (Noto Sans Mono).
                const QFontMetricsF font(at.data(Qt::FontRole).value<QFont>());
                QVERIFY2(qAbs(font.horizontalAdvance('i') - font.horizontalAdvance('W')) < 0.01, qPrintable(name));
            }
        };
        check(steps, steps.indexOf(Place{1, 4, -1}), {StepsModel::Changes, StepsModel::Nodes, StepsModel::Time});
        check(kernels, kernels.index(0, 0),
              {KernelsModel::Time, KernelsModel::Share, KernelsModel::NodeCount, KernelsModel::Read,
               KernelsModel::Written, KernelsModel::Flops});
        check(outputs, outputs.index(0, 0),
              {OutputsModel::Minimum, OutputsModel::Maximum, OutputsModel::Mean, OutputsModel::NonFinite,
               OutputsModel::Error});
        check(explain, explain.index(0, 0), {ExplainModel::Tried, ExplainModel::Applied, ExplainModel::Time});
    }

    void kernelsSortByWhatTheyCost() {
        KernelsModel kernels;
        KernelInfo slow, fast;
        slow.name = "slow";
        slow.microseconds = 2000;
        slow.bytesRead = 9;
        fast.name = "fast";
        fast.microseconds = 300;
        fast.bytesRead = 1 << 20;
        kernels.setKernels({slow, fast});
        const auto value = [&](int row, int column) {
            return kernels.index(row, column).data(KernelsModel::SortRole).toDouble();
        };
        QVERIFY(value(0, KernelsModel::Time) > value(1, KernelsModel::Time));  // 2.0 ms and 300 µs: not by their texts
        QVERIFY(value(0, KernelsModel::Read) < value(1, KernelsModel::Read));
        QCOMPARE(kernels.microseconds(), 2300.0);
    }

    void queries_data() {
        QTest::addColumn<QString>("query");
        QTest::addColumn<QString>("hits");
        QTest::newRow("word") << "mm"
                              << "m addmm";
        QTest::newRow("two words") << "mm relu"
                                   << "";
        QTest::newRow("op") << "op=mm"
                            << "m addmm";
        QTest::newRow("change") << "change=added"
                                << "addmm";
        QTest::newRow("and") << "op=mm & change=removed"
                             << "m";
        QTest::newRow("not") << "change!=kept"
                             << "m y addmm";
        QTest::newRow("numbers") << "users>=2 & bytes=512"
                                 << "x b t";
        QTest::newRow("numel") << "numel>127 & op=permute"
                               << "t";
        QTest::newRow("too big") << "numel>1e6"
                                 << "";
    }
    void queries() {
        QFETCH(QString, query);
        const UnionGraph graph = testing::fusedBias(2);
        const auto parsed = NodeQuery::parse(query.toStdString());
        QVERIFY(parsed);
        QStringList hits;
        for (const auto& node : graph.nodes)
            if (parsed->matches(node)) hits << QString::fromStdString(node.info.name);
        QTEST(hits.join(' '), "hits");
    }

    void badQueriesAreNamed() {
        QCOMPARE(QString::fromStdString(NodeQuery::parse("colour=red").error().message),
                 "no field \"colour\"; there are name, op, type, module, tensor, change, numel, bytes, users, inputs");
        QCOMPARE(QString::fromStdString(NodeQuery::parse("numel>many").error().message),
                 "numel needs a number, not \"many\"");
        QCOMPARE(QString::fromStdString(NodeQuery::parse("op<3").error().message), "op is text: compare with = or !=");
        QCOMPARE(elementsOf("f32[8, 64], i64[2]"), 514.0);
        QCOMPARE(elementsOf("f32[s0, 64]"), -1.0);
        QCOMPARE(elementsOf("f32[]"), 1.0);
    }
};

CUTAWAY_SUITE(ModelsTest)
#include "models_test.moc"
