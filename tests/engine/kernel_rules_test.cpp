// The rules between fusion and plan (tests/data/nests/kernel_rules.txt): what each makes of a kernel, where it leaves
// one alone, and that kernels before and after compute the same, also as nests of the plan that is chosen.
#include "engine/loops/kernel_rules.h"

#include <QtTest>
#include <cmath>

#include "engine/loops/interpret.h"
#include "engine/loops/kernel_text.h"
#include "tests/support/kernels.h"
#include "tests/support/paths.h"
#include "tests/support/sections.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

QString rulesFile() { return testFile("data/nests/kernel_rules.txt"); }

struct RuleCase {
    QString name, kernel, after;
};
QList<RuleCase> readCases() {
    QList<RuleCase> cases;
    for (const Section& section : readSections(rulesFile()).all)
        cases.push_back(
            {section.name, section.text.section("--- after\n", 0, 0), section.text.section("--- after\n", 1)});
    return cases;
}

/// Rows of the cases are long from 4 000 bytes on, and reading is dear.
TargetInfo target() {
    TargetInfo info = kCpuTarget;
    info.loops.rowBytes = 4000;
    info.loops.onlineSoftmax = true;
    return info;
}
const KernelRule* ruleNamed(const QString& name) {
    for (const KernelRule& rule : kernelRules())
        if (name.startsWith(QString::fromUtf8(rule.name.data(), static_cast<qsizetype>(rule.name.size())) + ":"))
            return &rule;
    return nullptr;
}
/// What the rule says, as remarks, and the kernel; "unchanged" if it leaves it alone.
QString applied(const KernelRule& rule, Kernel& kernel) {
    QString out;
    for (const std::string& sentence : rule.apply(kernel, target()))
        out += "# " + QString::fromStdString(sentence) + "\n";
    return out.isEmpty() ? "unchanged\n" : out + QString::fromStdString(text(kernel));
}

}  // namespace

class KernelRulesTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        if (!blesses()) return;
        Sections sections = readSections(rulesFile());
        for (Section& section : sections.all) {
            auto kernel = parseKernel(section.text.section("--- after\n", 0, 0).toStdString());
            QVERIFY2(bool(kernel), kernel ? "" : kernel.error().text().c_str());
            QVERIFY2(ruleNamed(section.name), qPrintable(section.name));
            const QString before = QString::fromStdString(text(*kernel));
            section.text = before + "--- after\n" + applied(*ruleNamed(section.name), *kernel);
        }
        QVERIFY(writeSections(rulesFile(), sections));
    }
    void rules_data() {
        QTest::addColumn<QString>("kernel");
        QTest::addColumn<QString>("after");
        for (const RuleCase& ruleCase : readCases())
            QTest::newRow(qPrintable(ruleCase.name)) << ruleCase.kernel << ruleCase.after;
    }
    void rules() {
        QFETCH(QString, kernel);
        QFETCH(QString, after);
        const KernelRule* rule = ruleNamed(QTest::currentDataTag());
        QVERIFY(rule);
        const auto before = parseKernel(kernel.toStdString());
        QVERIFY2(bool(before), before ? "" : before.error().text().c_str());
        QCOMPARE(QString::fromStdString(text(*before)), kernel);
        Kernel changed = *before;
        QCOMPARE(applied(*rule, changed), after);
        const std::string once = text(changed);
        QVERIFY2(rule->apply(changed, target()).empty() && text(changed) == once, "a second time changes nothing");
        if (after == "unchanged\n") return;
        const QString problem = apart(*before, changed);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        const QString plan = difference(changed, choosePlan(changed, target()), target(), kElements, 3, 1);
        QVERIFY2(plan.isEmpty(), qPrintable(plan));
    }
    /// Each rule has a case where it fires and one where it does not.
    void everyRuleHasCases() {
        for (const KernelRule& rule : kernelRules()) {
            int fires = 0, leaves = 0;
            for (const RuleCase& ruleCase : readCases())
                if (ruleNamed(ruleCase.name) == &rule) ++(ruleCase.after == "unchanged\n" ? leaves : fires);
            QVERIFY2(fires > 0 && leaves > 0, rule.name.data());
            QVERIFY(!rule.why.empty());
        }
    }

    void variances_data() {
        QTest::addColumn<double>("mean");
        QTest::addColumn<double>("first");
        QTest::newRow("around zero") << 0.0 << 0.0;
        QTest::newRow("far from zero") << 1e6 << 1e6;
        QTest::newRow("the first is far from all others") << 0.0 << 1e6;
        QTest::newRow("the first is not a number") << 0.0 << std::nan("");
        QTest::newRow("the first is infinite") << 0.0 << double(INFINITY);
    }
    /// Against sums in f64 around the exact mean, wherever the first element lies.
    void variances() {
        QFETCH(double, mean);
        QFETCH(double, first);
        const auto before = parseKernel(
            "variance(b0: f32!, b1: f32)\n  v0 = sum(x1 < 2000: b1[x1])/2000.0\n  v1 = b1[x2] - v0\n"
            "  b0[0] = sum(x2 < 2000: v1*v1)\n");
        QVERIFY2(bool(before), before ? "" : before.error().text().c_str());
        Kernel kernel = *before;
        QCOMPARE(onePassVariance(kernel, target()).size(), size_t{1});
        std::vector<float> x(2000);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(mean + std::sin(static_cast<double>(i) * 0.7));
        x[0] = static_cast<float>(first);
        double sum = 0, squares = 0;
        for (const float v : x) sum += v;
        for (const float v : x) squares += (v - sum / 2000) * (v - sum / 2000);
        float y = 0;
        void* const buffers[] = {&y, x.data()};
        QCOMPARE(interpretNests(lowerLoops(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget), buffers, {}),
                 KernelFault::None);
        if (std::isfinite(squares)) QVERIFY2(std::abs(y - squares) <= 3e-7 * squares, qPrintable(QString::number(y)));
        else QVERIFY(std::isnan(y));
    }

    void processorsReadAgain() {
        const auto kernel =
            parseKernel("sums(b0: f32!, b1: f32)\n  b0[0] = sum(x2 < 2000: exp(b1[x2] - max(x1 < 2000: b1[x1])))\n");
        QVERIFY2(bool(kernel), kernel ? "" : kernel.error().text().c_str());
        for (const bool dear : {false, true}) {
            TargetInfo info = target();
            info.loops.onlineSoftmax = dear;
            Kernel changed = *kernel;
            QCOMPARE(onlineSoftmax(changed, info).size(), size_t{dear});
        }
    }
    void exponentials_data() {
        QTest::addColumn<QString>("kind");
        for (const char* kind : {"rising", "falling", "minus infinity first", "minus infinity", "infinity", "nan"})
            QTest::newRow(kind) << QString(kind);
    }
    void exponentials() {
        QFETCH(QString, kind);
        const auto before = parseKernel(
            "sums(b0: f32!, b1: f32)\n  v0 = max(x1 < 2000: b1[x1])\n  b0[0] = sum(x2 < 2000: exp(b1[x2] - v0))\n");
        QVERIFY2(bool(before), before ? "" : before.error().text().c_str());
        Kernel kernel = *before;
        QCOMPARE(onlineSoftmax(kernel, target()).size(), size_t{1});
        std::vector<float> x(2000);
        for (size_t i = 0; i < x.size(); ++i)
            x[i] =
                static_cast<float>(kind == "falling" ? 2000 - static_cast<double>(i) : static_cast<double>(i)) * 0.02f;
        if (kind == "minus infinity first")
            for (size_t i = 0; i < 40; ++i) x[i] = -INFINITY;
        if (kind == "minus infinity") std::fill(x.begin(), x.end(), -INFINITY);
        if (kind == "infinity") x[77] = INFINITY;
        if (kind == "nan") x[1999] = NAN;
        float two = 0, one = 0, meant = 0;
        void *const first[] = {&two, x.data()}, *const second[] = {&one, x.data()}, *const third[] = {&meant, x.data()};
        QCOMPARE(interpretKernel(*before, first, {}), KernelFault::None);
        QCOMPARE(interpretKernel(kernel, third, {}), KernelFault::None);
        QCOMPARE(interpretNests(lowerLoops(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget), second, {}),
                 KernelFault::None);
        for (const float own : {one, meant}) {
            if (std::isnan(two)) QVERIFY(std::isnan(own));
            // Rows that rise scale their sum at each element, by an exponential of f32.
            else QVERIFY2(std::abs(own - two) <= 2e-6f * two, qPrintable(QString("%1 %2").arg(own).arg(two)));
        }
    }

  private:
    static constexpr size_t kElements = 30000;
    static QString apart(const Kernel& before, const Kernel& after) {
        Memory meant(before, kElements, 3), made(after, kElements, 3);
        interpretKernel(before, meant.pointers, {});
        interpretKernel(after, made.pointers, {});
        for (size_t b = 0; b < before.buffers.size(); ++b)
            for (size_t i = 0; i < kElements; ++i) {
                const auto at = static_cast<int64_t>(i);
                const double m = readElement(meant.bytes[b].data(), before.buffers[b].dtype, at).real,
                             n = readElement(made.bytes[b].data(), before.buffers[b].dtype, at).real;
                if (!(std::abs(m - n) <= 4e-7 * std::abs(m)))
                    return QStringLiteral("b%1[%2] is %3, not %4").arg(b).arg(i).arg(n).arg(m);
            }
        return {};
    }
};

CUTAWAY_SUITE(KernelRulesTest)
#include "kernel_rules_test.moc"
