// FX text: what parses, how it prints, what is refused and where.
#include <QDirIterator>
#include <QFile>
#include <QTest>

#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"

using namespace cutaway;

namespace {

QByteArray readFile(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Prints, parses and prints again; both texts must be equal.
void checkRoundTrip(const Module& module) {
    const PrintedText first = printText(module);
    QCOMPARE(static_cast<qsizetype>(first.lineNodes.size()), QByteArray::fromStdString(first.text).count('\n'));
    auto again = parseText(first.text);
    QVERIFY2(again.has_value(), again ? "" : (again.error().text() + "\n" + first.text.substr(0, 4000)).c_str());
    const PrintedText second = printText(**again);
    if (second.text == first.text) return;
    const auto [left, right] = std::mismatch(first.text.begin(), first.text.end(), second.text.begin(), second.text.end());
    const size_t at = static_cast<size_t>(left - first.text.begin());
    const size_t begin = at < 200 ? 0 : at - 200;
    QFAIL(("printed differently:\n" + first.text.substr(begin, 400) + "\n--- against ---\n" + second.text.substr(begin, 400)).c_str());
}

}  // namespace

class TextTest : public QObject {
    Q_OBJECT

  private slots:
    void referenceDumps_data();
    void referenceDumps();
};

void TextTest::referenceDumps_data() {
    QTest::addColumn<QString>("path");
    const QString root = testing::referenceFolder(".");
    if (root.isEmpty()) return;
    QDirIterator files(root, {"*.py"}, QDir::Files, QDirIterator::Subdirectories);
    QStringList paths;
    while (files.hasNext()) paths << files.next();
    paths.sort();
    for (const QString& path : paths) {
        const QByteArray text = readFile(path);
        if (text.contains("(torch.nn.Module):") && text.contains("def forward(self") && !path.endsWith("export.py"))
            QTest::newRow(qPrintable(path.mid(root.size()))) << path;
    }
}

void TextTest::referenceDumps() {
    if (testing::referenceFolder(".").isEmpty()) QSKIP(testing::kNoReference);
    QFETCH(QString, path);
    Result<std::unique_ptr<Module>> module = Error{};
    try {
        module = parseText(readFile(path).toStdString());
    } catch (const InternalError& error) {
        QFAIL(error.what());
    }
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    if (qEnvironmentVariableIsSet("CUTAWAY_SHOW_REMARKS"))
        for (const std::string& remark : (*module)->origin.remarks) qInfo("%s", remark.c_str());
    checkRoundTrip(**module);
}

QTEST_GUILESS_MAIN(TextTest)
#include "text_test.moc"
