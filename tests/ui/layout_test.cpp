// Layout: format, our plain layout, dot, and the client's time limit, kill and restart.
#include <QSignalSpy>
#include <QtTest>
#include <sstream>

#include "tests/support/suites.h"
#include "tests/ui/graphs.h"
#include "ui/background.h"
#include "ui/graph/layout_client.h"

using namespace cutaway;
using namespace cutaway::ui;

using Answer = std::shared_ptr<const LayoutAnswer>;
Q_DECLARE_METATYPE(Answer)

class LayoutTest : public QObject {
    Q_OBJECT

    static QString overlaps(const LayoutProblem& problem, const LayoutAnswer& answer) {
        for (size_t i = 0; i < problem.nodes.size(); ++i)
            for (size_t j = i + 1; j < problem.nodes.size(); ++j) {
                const double dx = std::abs(answer.centres[i].x - answer.centres[j].x);
                const double dy = std::abs(answer.centres[i].y - answer.centres[j].y);
                if (dx < (problem.nodes[i].width + problem.nodes[j].width) / 2 - 0.1 &&
                    dy < (problem.nodes[i].height + problem.nodes[j].height) / 2 - 0.1)
                    return QStringLiteral("nodes %1 and %2 overlap").arg(i).arg(j);
            }
        return {};
    }

    static LayoutAnswer run(const QString& how, const LayoutProblem& problem) {
        if (how == "plain") return layoutPlainly(problem);
        auto answer = layoutWithDot(problem);
        if (!answer) qFatal("%s", answer.error().message.c_str());
        return *answer;
    }

    static void bothWays() {
        QTest::addColumn<QString>("how");
        QTest::newRow("plain") << "plain";
        QTest::newRow("dot") << "dot";
    }

    /// A program that reads its input and then sleeps, as dot does on an unlucky graph.
    static QString sleeper(const QTemporaryDir& folder) {
        const QString path = folder.filePath("sleeper");
        QFile file(path);
        if (!file.open(QIODevice::WriteOnly)) return {};
        file.write("#!/bin/sh\nexec sleep 60\n");
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return path;
    }

  private slots:
    void noNodesOverlap_data() { bothWays(); }
    void noNodesOverlap() {
        QFETCH(QString, how);
        for (unsigned seed : {1u, 2u, 3u}) {
            const LayoutProblem problem = testing::randomProblem(150, seed);
            const LayoutAnswer answer = run(how, problem);
            QCOMPARE(answer.centres.size(), problem.nodes.size());
            QCOMPARE(answer.routes.size(), problem.edges.size());
            QVERIFY2(overlaps(problem, answer).isEmpty(),
                     qPrintable(overlaps(problem, answer) + QString(", seed %1").arg(seed)));
            for (size_t i = 0; i < problem.nodes.size(); ++i) {
                QVERIFY(answer.centres[i].x >= 0 && answer.centres[i].x <= answer.width);
                QVERIFY(answer.centres[i].y >= 0 && answer.centres[i].y <= answer.height);
            }
        }
    }

    void usersStandBelowTheirInputs_data() { bothWays(); }
    void usersStandBelowTheirInputs() {
        QFETCH(QString, how);
        const LayoutProblem problem = testing::randomProblem(120, 7);
        const LayoutAnswer answer = run(how, problem);
        for (size_t i = 0; i < problem.edges.size(); ++i)
            if (!answer.routes[i].empty())
                QVERIFY(answer.centres[problem.edges[i].from].y < answer.centres[problem.edges[i].to].y);
    }

    void sameProblemSameAnswer_data() { bothWays(); }
    void sameProblemSameAnswer() {
        QFETCH(QString, how);
        const LayoutProblem problem = testing::randomProblem(200, 5);
        QCOMPARE(writeAnswer(run(how, problem)), writeAnswer(run(how, problem)));
    }

    /// Results of one call keep their order, whoever reads them.
    void resultsStandInOrder() {
        for (const bool turned : {false, true}) {
            LayoutProblem problem;
            for (int i = 0; i < 9; ++i) problem.nodes.push_back({60, 30, -1});
            problem.nodes[0].inOrder = true;
            for (int i = 1; i <= 4; ++i) problem.edges.push_back({0, i, 2});
            for (int i = 1; i <= 4; ++i) problem.edges.push_back({i, turned ? 9 - i : 4 + i, 2});
            for (int i = 5; i < 8; ++i) problem.edges.push_back({i, i + 1, 2});
            std::stringstream sent(writeProblem(problem));
            const auto received = readProblem(sent);
            QVERIFY(received && received->nodes[0].inOrder && !received->nodes[1].inOrder);
            const auto answer = layoutWithDot(*received);
            QVERIFY(answer.has_value());
            for (int i = 1; i < 4; ++i)
                QVERIFY(answer->centres[static_cast<size_t>(i)].x < answer->centres[static_cast<size_t>(i) + 1].x);
        }
    }

    void edgesOverTheRankLimitBecomeStubs_data() { bothWays(); }
    void edgesOverTheRankLimitBecomeStubs() {
        QFETCH(QString, how);
        LayoutProblem problem;
        problem.longEdgeRanks = 5;
        for (int i = 0; i < 10; ++i) problem.nodes.push_back({50, 20, -1});
        for (int i = 0; i < 9; ++i) problem.edges.push_back({i, i + 1, 1});
        problem.edges.push_back({0, 5, 1});  // spans 5 ranks
        problem.edges.push_back({0, 6, 1});  // spans 6
        const LayoutAnswer answer = run(how, problem);
        QVERIFY(!answer.routes[9].empty());
        QVERIFY(answer.routes[10].empty());
    }

    void routesRunFromTailToHead_data() { bothWays(); }
    void routesRunFromTailToHead() {
        QFETCH(QString, how);
        const LayoutProblem problem = testing::randomProblem(80, 11);
        const LayoutAnswer answer = run(how, problem);
        for (const auto& route : answer.routes) {
            if (route.empty()) continue;
            QCOMPARE(route.size() % 3, size_t(1));
            QVERIFY(route.front().y < route.back().y);
        }
    }

    void clustersHoldTheirNodes_data() { bothWays(); }
    void clustersHoldTheirNodes() {
        QFETCH(QString, how);
        LayoutProblem problem = testing::randomProblem(40, 3);
        problem.clusters = {{-1}, {0}, {-1}};
        for (int i = 0; i < 40; ++i) problem.nodes[i].cluster = i < 30 ? i / 10 : -1;
        const LayoutAnswer answer = run(how, problem);
        for (int i = 0; i < 30; ++i)
            for (int cluster = problem.nodes[i].cluster; cluster >= 0; cluster = problem.clusters[cluster].parent) {
                const LayoutBox& box = answer.clusters[cluster];
                const LayoutPoint at = answer.centres[i];
                QVERIFY(at.x > box.x && at.x < box.x + box.width && at.y > box.y && at.y < box.y + box.height);
            }
    }

    void emptyAndSingle_data() { bothWays(); }
    void emptyAndSingle() {
        QFETCH(QString, how);
        QVERIFY(run(how, {}).centres.empty());
        LayoutProblem one;
        one.nodes.push_back({50, 20, -1});
        one.edges.push_back({0, 0, 1});  // a node that reads itself: bad input, not a crash
        QCOMPARE(run(how, one).centres.size(), size_t(1));
    }

    void theFormatReadsBack() {
        LayoutProblem problem = testing::randomProblem(30, 2);
        problem.clusters = {{-1}, {0}};
        problem.nodes[3].cluster = 1;
        std::istringstream asked(writeProblem(problem));
        auto readBack = readProblem(asked);
        QVERIFY(readBack);
        QCOMPARE(writeProblem(*readBack), writeProblem(problem));
        LayoutAnswer answer = layoutPlainly(problem);
        answer.note = "two words";
        std::istringstream answered(writeAnswer(answer));
        auto again = readAnswer(answered, problem);
        QVERIFY(again);
        QCOMPARE(writeAnswer(*again), writeAnswer(answer));
    }

    void badRequestsAreNamed_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("error");
        QTest::newRow("empty") << QByteArray() << "layout record, line 1: expected \"cutaway-layout 1\"";
        QTest::newRow("cut off") << QByteArray("cutaway-layout 1\nn 1 1 -1\n")
                                 << "layout record: ends before the closing \".\"";
        QTest::newRow("no node") << QByteArray("cutaway-layout 1\nn 1 1 -1\ne 0 1 1\n.\n")
                                 << "layout record, line 3: no such node";
        QTest::newRow("no cluster") << QByteArray("cutaway-layout 1\nn 1 1 0\n.\n")
                                    << "layout record, line 2: no such cluster";
        QTest::newRow("not a size") << QByteArray("cutaway-layout 1\nn nan -1 -1\n.\n")
                                    << "layout record, line 2: a node is: width height cluster";
        QTest::newRow("unknown") << QByteArray("cutaway-layout 1\nx\n.\n")
                                 << "layout record, line 2: unknown record \"x\"";
    }
    void badRequestsAreNamed() {
        QFETCH(QByteArray, text);
        QFETCH(QString, error);
        std::istringstream in(text.toStdString());
        const auto problem = readProblem(in);
        QVERIFY(!problem);
        QCOMPARE(QString::fromStdString(problem.error().where + ": " + problem.error().message), error);
    }

    /// The window once waited for ever: an answer came before its number was known.
    void answersNeverComeBeforeTheQuestionIsOver() {
        int answer = 0;
        QFutureInterface<int> made;
        made.reportStarted();
        made.reportResult(7);
        made.reportFinished();
        whenMade(this, made.future(), [&](int result) { answer = result; });
        QCOMPARE(answer, 0);
        QTRY_COMPARE(answer, 7);
    }

    void theClientAnswersThroughTheProcess() {
        LayoutClient client;
        QSignalSpy finished(&client, &LayoutClient::finished);
        const LayoutProblem problem = testing::randomProblem(100, 4);
        const int request = client.request(problem);
        QVERIFY(client.isBusy());
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, 30000);
        QCOMPARE(finished[0][0].toInt(), request);
        QCOMPARE(finished[0][2].toString(), QString());
        QCOMPARE(writeAnswer(*finished[0][1].value<Answer>()), writeAnswer(*layoutWithDot(problem)));
        QVERIFY(!client.isBusy());
    }

    void pastTheLimitThePlainLayoutAnswers() {
        QTemporaryDir folder;
        LayoutClient client;
        client.setProgram(sleeper(folder));
        client.setTimeLimit(50);
        QSignalSpy finished(&client, &LayoutClient::finished);
        const LayoutProblem problem = testing::randomProblem(60, 4);
        client.request(problem);
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, 30000);
        QCOMPARE(finished[0][2].toString(), "Graphviz did not finish in 0.05 s; simple layout");
        QCOMPARE(writeAnswer(*finished[0][1].value<Answer>()), writeAnswer(layoutPlainly(problem)));
    }

    void whatDotCannotFinishIsNotAskedOfIt() {
        QTemporaryDir folder;
        LayoutClient client;
        client.setProgram(sleeper(folder));
        client.setTimeLimit(600000);
        QSignalSpy finished(&client, &LayoutClient::finished);
        client.request(testing::randomProblem(3001, 5));
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, 30000);
        QCOMPARE(finished[0][2].toString(), "simple layout, as for all graphs of more than 3,000 boxes");
        QCOMPARE(finished[0][1].value<Answer>()->centres.size(), size_t(3001));
    }

    /// Boxes of very different widths: a curve that leaves a wide one near its corner is nearer to the other's centre.
    void routesOfWideBoxesDoSoToo() {
        std::mt19937 random(5);
        for (int turn = 0; turn < 60; ++turn) {
            LayoutProblem problem = testing::randomProblem(40, random());
            for (auto& node : problem.nodes) node.width = random() % 2 ? 330 : 30;
            const LayoutAnswer answer = run("dot", problem);
            for (size_t i = 0; i < problem.edges.size(); ++i) {
                if (answer.routes[i].empty()) continue;
                const auto& edge = problem.edges[i];
                const double tail = answer.centres[edge.from].y, head = answer.centres[edge.to].y;
                const auto &first = answer.routes[i].front(), &last = answer.routes[i].back();
                QVERIFY(std::abs(first.y - tail) <= 18 && std::abs(last.y - head) <= 18);
            }
        }
    }

    void anEmptyClusterHasNoBox() {
        LayoutProblem problem = testing::randomProblem(5, 1);
        problem.clusters = {{-1}, {-1}};
        problem.nodes[0].cluster = problem.nodes[1].cluster = 1;
        const LayoutAnswer answer = run("dot", problem);
        const LayoutBox& box = answer.clusters[0];
        QVERIFY(box.x == 0 && box.y == 0 && box.width == 0 && box.height == 0);
        QVERIFY(answer.clusters[1].width > 0);
    }

    void aGraphvizWithoutPluginsIsSaid() {
        QTemporaryDir none;
        qputenv("GVBINDIR", none.path().toUtf8());
        LayoutClient client;
        QSignalSpy finished(&client, &LayoutClient::finished);
        client.request(testing::randomProblem(30, 1));
        const bool came = QTest::qWaitFor([&] { return finished.size() == 1; }, 30000);
        qunsetenv("GVBINDIR");
        QVERIFY(came);
        QVERIFY2(finished[0][2].toString().contains("list of plugins"), qPrintable(finished[0][2].toString()));
    }

    void aNewRequestKillsTheRunningOne() {
        QTemporaryDir folder;
        LayoutClient client;
        QSignalSpy finished(&client, &LayoutClient::finished);
        client.setProgram(sleeper(folder));
        client.setTimeLimit(60000);
        client.request(testing::randomProblem(30, 1));
        QTest::qWait(50);
        client.setProgram(LayoutClient::defaultProgram());
        const int second = client.request(testing::randomProblem(40, 2));
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, 30000);
        QCOMPARE(finished[0][0].toInt(), second);
        QCOMPARE(finished[0][1].value<Answer>()->centres.size(), size_t(40));
        QTest::qWait(20);
        QCOMPARE(finished.size(), 1);
    }

    void aMissingOrFailingProgramIsSaid_data() {
        QTest::addColumn<QString>("program");
        QTest::addColumn<QString>("note");
        QTest::newRow("none") << ""
                              << "cutaway-layout is not installed; simple layout";
        QTest::newRow("missing") << "/nonexistent/layout"
                                 << "/nonexistent/layout does not start; simple layout";
        QTest::newRow("failing") << "/bin/false"
                                 << "the layout process ended with status 1 and no message; simple layout";
        QTest::newRow("babbling") << "/bin/true"
                                  << "Graphviz's answer cannot be read (expected \"cutaway-layout 1\"); simple layout";
    }
    void aMissingOrFailingProgramIsSaid() {
        QFETCH(QString, program);
        LayoutClient client;
        client.setProgram(program);
        QSignalSpy finished(&client, &LayoutClient::finished);
        client.request(testing::randomProblem(30, 1));
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, 30000);
        QTEST(finished[0][2].toString(), "note");
        QCOMPARE(finished[0][1].value<Answer>()->centres.size(), size_t(30));
    }

    void aKilledProgramIsSaid() {
        QTemporaryDir folder;
        QFile script(folder.filePath("killed"));
        QVERIFY(script.open(QIODevice::WriteOnly));
        script.write("#!/bin/sh\ncat > /dev/null\nkill -9 $$\n");
        script.close();
        QVERIFY(script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
        LayoutClient client;
        client.setProgram(script.fileName());
        QSignalSpy finished(&client, &LayoutClient::finished);
        client.request(testing::randomProblem(30, 1));
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, 30000);
        QCOMPARE(finished[0][2].toString(), "the layout process was killed by signal 9 (Killed); simple layout");
        QCOMPARE(finished[0][1].value<Answer>()->centres.size(), size_t(30));
    }

    void aCancelledLayoutSaysNothing() {
        LayoutClient client;
        QSignalSpy finished(&client, &LayoutClient::finished);
        client.request(testing::randomProblem(50, 1));
        client.cancel();
        QTest::qWait(150);
        QCOMPARE(finished.size(), 0);
    }
};

CUTAWAY_SUITE(LayoutTest)
#include "layout_test.moc"
