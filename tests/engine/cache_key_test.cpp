// Ingredients of a key of the cache that say who compiles, and on what.
#include <QtTest>

#include "cutaway/graph_cache.h"
#include "engine/cache/graph_key.h"
#include "tests/support/suites.h"

using namespace cutaway;

class CacheKeyTest : public QObject {
    Q_OBJECT

  private slots:
    /// Who compiles, and on what: another one of each is another ingredient and another key, and the sentence says
    /// which.
    void circumstances_data() {
        QTest::addColumn<QString>("differs");
        for (const char* one : {"", "engine", "build", "compiler and processor", "number of threads", "environment"})
            QTest::newRow(*one ? one : "nothing") << one;
    }
    void circumstances() {
        QFETCH(QString, differs);
        const CompileEnvironment before{"0123456789abcdef",      "1.2.3", "gcc 12 release",
                                        "g++ 12\n-march=native", 2,       "A=1"};
        CompileEnvironment after = before;
        if (differs == "engine") after.engine = "f123456789abcdef";
        if (differs == "build") after.build = "gcc 13 release";
        if (differs == "compiler and processor") after.compiler = "g++ 12\n-march=x86-64-v3";
        if (differs == "number of threads") after.threads = 3;
        if (differs == "environment") after.environment = "A=2";
        const auto a = environmentIngredients(before), b = environmentIngredients(after);
        QStringList found;
        for (size_t i = 0; i < a.size(); ++i)
            if (a[i].digest != b[i].digest) found << QString::fromStdString(a[i].name);
        QCOMPARE(found.join(';'), differs);
        QCOMPARE(keyOf(a) == keyOf(b), differs.isEmpty());
        QVERIFY(QString::fromStdString(differenceText(a, b)).contains(differs));
    }
};

CUTAWAY_SUITE(CacheKeyTest)
#include "cache_key_test.moc"
