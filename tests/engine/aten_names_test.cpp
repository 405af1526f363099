// The names of PyTorch's newest ATen (tests/scripts/record_names.py) against the op tables.
#include <QFile>
#include <QRegularExpression>
#include <QtTest>

#include "engine/ops/op_registry.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class AtenNamesTest : public QObject {
    Q_OBJECT

  private slots:
    /// A name of PyTorch's newest ATen has a row, or data/ops/left_out.txt says why not.
    void everyNameIsKnownOrLeftOut() {
        const auto lines = [](const char* name) {
            QFile file(testFile(name));
            return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts)
                                                  : QStringList();
        };
        QStringList patterns;
        for (const QString& line : lines("data/ops/left_out.txt"))
            if (!line.startsWith('#')) patterns += line.split(' ', Qt::SkipEmptyParts);
        std::vector<QRegularExpression> leftOut;
        for (const QString& pattern : patterns)
            leftOut.emplace_back("^" + QRegularExpression::escape(pattern).replace("\\*", ".*") + "$");
        std::vector<bool> used(leftOut.size());
        QStringList unknown;
        const QStringList names = lines("data/ops/aten_names.txt");
        QVERIFY(names.size() > 2000);
        for (const QString& name : names) {
            if (name.startsWith('#') || findOp("aten." + name.toStdString()) != nullptr) continue;
            bool found = false;
            for (size_t i = 0; i < leftOut.size(); ++i)
                if (leftOut[i].match(name).hasMatch()) used[i] = found = true;
            if (!found) unknown << name;
        }
        QVERIFY2(unknown.isEmpty(), qPrintable("neither known nor left out: " + unknown.join(' ')));
        QStringList idle;
        for (size_t i = 0; i < used.size(); ++i)
            if (!used[i]) idle << patterns[static_cast<int>(i)];
        QVERIFY2(idle.isEmpty(), qPrintable("leave out nothing: " + idle.join(' ')));
    }
};

CUTAWAY_SUITE(AtenNamesTest)
#include "aten_names_test.moc"
