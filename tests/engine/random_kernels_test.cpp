// Random graphs, compiled: what fusion makes of elementwise operators, reductions, views, pads, concatenations and
// gathers over mixed dtypes, beside the pure interpreter. A failure names its seed: CUTAWAY_SEED starts there,
// CUTAWAY_SEEDS=N takes so many.
#include "tests/engine/random_kernels.h"

#include <QtTest>

#include "engine/text/print.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class RandomKernelsTest : public QObject {
    Q_OBJECT

  private slots:
    void agree() {
        const int first = qEnvironmentVariableIntValue("CUTAWAY_SEED"),
                  count = qEnvironmentVariableIntValue("CUTAWAY_SEEDS");
        std::vector<LoweringCase> cases;
        size_t exact = 0, results = 0;
        for (int seed = first; seed < first + (count ? count : 60); ++seed) {
            cases.push_back(randomKernels(static_cast<uint64_t>(seed)));
            for (const Bound& bound : cases.back().bounds) exact += bound.ulps == 0;
            results += cases.back().bounds.size();
        }
        std::vector<Way> ways = judgedWays();
        ways.push_back(compiledByAnyPlan(static_cast<uint32_t>(first)));
        for (const Way& way : ways) {
            const std::vector<std::string> wrong = wrongOf(way, cases, 12);
            for (size_t i = 0; i < cases.size(); ++i) {
                if (wrong[i].empty()) continue;
                // QtTest cuts long messages.
                std::fprintf(stderr, "%s\n", printText(*cases[i].module, {}).text.c_str());
                QTest::qFail((cases[i].name + ": " + wrong[i]).c_str(), __FILE__, __LINE__);
            }
        }
        qInfo("seeds %d to %zu: %zu results, %zu of them exact", first, first + cases.size() - 1, results, exact);
    }
};

CUTAWAY_SUITE(RandomKernelsTest)
#include "random_kernels_test.moc"
