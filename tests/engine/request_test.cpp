// A request is data: what it prints reads back as itself, and what contradicts itself is refused.
#include <QtTest>

#include "cutaway/settings.h"
#include "engine/support/random.h"
#include "engine/support/shell_words.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Names and texts as people choose them at their worst.
std::string anyText(Random& random, bool empty = false) {
    static const std::string_view kPieces[] = {"a", "pass_1", "B", " ",  "'", "\"",     "\\", ":",  ",",
                                               "=", "#",      "/", "\n", "é", "--mode", "$x", "%2C"};
    std::string out = empty ? "" : "n";
    for (uint64_t count = random.below(6); count > 0; --count) out += kPieces[random.below(std::size(kPieces))];
    return out;
}
bool coin(Random& random) { return random.below(2) == 0; }

CompileRequest anyRequest(Random& random) {
    CompileRequest request;
    request.mode = kModes[random.below(std::size(kModes))];
    request.strict = request.mode == Mode::Jvp && coin(random);
    request.target = coin(random) ? Target::Cuda : Target::Cpu;
    request.freeze = request.mode == Mode::Inference && coin(random);
    request.parity = coin(random);
    if (coin(random)) request.onlyStage = anyText(random);
    else request.allStages = coin(random);
    request.passesOnly = coin(random);
    for (uint64_t count = random.below(3); count > 0; --count)
        request.disabledPasses.push_back("off_" + anyText(random));
    for (uint64_t count = random.below(3); count > 0; --count)
        request.userRules.push_back({anyText(random), anyText(random, true)});
    for (uint64_t count = random.below(3); count > 0; --count) {
        request.plugins.push_back({anyText(random), anyText(random), anyText(random, true), anyText(random, true)});
        if (coin(random)) request.plugins.back().settings = {{anyText(random), anyText(random, true)}};
    }
    for (uint64_t count = random.below(3); count > 0; --count)
        request.moves.push_back({anyText(random), coin(random), anyText(random)});
    for (uint64_t count = random.below(3); count > 0; --count) {
        OptionalPass& pass = request.enabledPasses.emplace_back();
        pass.name = anyText(random);
        for (uint64_t keys = random.below(3); keys > 0; --keys)
            pass.settings.emplace_back(anyText(random), anyText(random, true));
    }
    if (coin(random)) request.fuel = static_cast<int64_t>(random.next() >> 1);
    return request;
}

}  // namespace

class RequestTest : public QObject {
    Q_OBJECT

  private slots:
    void printedAndReadBack() {
        const uint64_t seed = static_cast<uint64_t>(QDateTime::currentMSecsSinceEpoch());
        qInfo("seed %llu", static_cast<unsigned long long>(seed));
        Random random(seed);
        for (int i = 0; i < 2000; ++i) {
            const CompileRequest request = anyRequest(random);
            const auto again = parseRequest(request.text());
            QVERIFY2(again.has_value(), (request.text() + "\n" + (again ? "" : again.error().text())).c_str());
            QVERIFY2(*again == request, (request.text() + "\n" + again->text()).c_str());
            QCOMPARE(again->hash(), request.hash());
        }
    }

    void texts_data() {
        QTest::addColumn<QString>("text");
        const auto row = [](const char* text) { QTest::newRow(*text ? text : "nothing") << text; };
        row("");
        row("--mode training --device cuda --parity");
        row("--only joint --disable pass_pattern_0/mm_add --disable dce");
        row("--enable pad_mm=force_shape_pad:1,decisions:a/b.json --enable batch_tanh --fuel 12");
        row("--rule-text 'mine:rule a\nfind\n    x'");
        row("--plugin joint_custom_pre_pass:fold:1.2:abc --move dce=before:early_patterns");
        row("--plugin joint_custom_pre_pass:fold.all:1.2:abc:most=3,how=b");
    }
    void texts() {
        QFETCH(QString, text);
        const auto request = parseRequest(text.toStdString());
        QVERIFY2(request.has_value(), request ? "" : request.error().text().c_str());
        QCOMPARE(QString::fromStdString(request->text()), text);
    }

    /// Names of version 0.1.
    void oldNames() {
        const auto request = parseRequest("--disable write_over --disable reuse_memory/write_over");
        QVERIFY2(request.has_value(), request ? "" : request.error().text().c_str());
        QCOMPARE(request->text(), std::string("--disable in_place --disable reuse_memory/in_place"));
    }

    /// Stays the same from one release to the next, as caches and reports need it.
    void hashes() {
        QCOMPARE(CompileRequest{}.hash(), parseRequest("")->hash());
        QCOMPARE(parseRequest("--mode training --parity")->hash(), 9238943313954944493ull);
        QVERIFY(parseRequest("--parity")->hash() != CompileRequest{}.hash());
    }

    void refused_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* text, const char* problem) { QTest::newRow(text) << text << problem; };
        row("--moed training", "did you mean --mode");
        row("training", "no option 'training'");
        row("--mode", "--mode takes one of inference training");
        row("--mode learning", "not 'learning'");
        row("--fuel -1", "takes a whole number from 0 on, not '-1'");
        row("--fuel 99999999999999999999", "takes a whole number from 0 on");
        row("--enable =x", "takes NAME or NAME=key:value");
        row("--move a=beside:b", "takes NAME=before:OTHER");
        row("--plugin a:b:c", "or PLACE:NAME:VERSION:HASH");
        row("--plugin a:most", "takes NAME, NAME:key=value");
        row("--plugin a:=3", "takes NAME, NAME:key=value");
        row("--rule-text none", "takes NAME:TEXT");
        row("--rules no/such/file", "no/such/file");
        row("--only 'joint", "a quote is not closed");
        row("--freeze --mode training", "--mode training asks for their gradients");
        row("--only joint --all-stages", "--only runs one stage");
        row("--enable batch_tanh --disable batch_tanh", "switched on and off");
    }
    void refused() {
        QFETCH(QString, text);
        QFETCH(QString, problem);
        const auto request = parseRequest(text.toStdString());
        QVERIFY(!request.has_value());
        QVERIFY2(QString::fromStdString(request.error().text()).contains(problem), request.error().text().c_str());
    }

    /// Each option of a request has its row, and each row its option.
    void everyOptionIsASetting() {
        for (const Setting& setting : settings()) {
            if (!setting.belongsTo(kRequest)) continue;
            const std::string value = setting.kind == Setting::Kind::Flag ? "" : " ''";
            const auto request = parseRequest("--" + std::string(setting.key) + value);
            if (!request) QVERIFY2(!request.error().text().starts_with("no option"), setting.key.data());
        }
    }

    void words() {
        QCOMPARE(*shellWords("a 'b c'\\ d \"e \\\" f\" ''"), (std::vector<std::string>{"a", "b c d", "e \" f", ""}));
        QCOMPARE(shellWord("it's"), std::string("'it'\\''s'"));
        QCOMPARE(shellWord("a/b-1.0"), std::string("a/b-1.0"));
    }
};

CUTAWAY_SUITE(RequestTest)
#include "request_test.moc"
