// PyTorch's same(), rule by rule: what it said of these pairs (tests/scripts/record_same.py) is what ours says.
#include "engine/numerics/same.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>
#include <limits>

#include "tests/support/suites.h"

using namespace cutaway;

namespace {

double numberOf(const QString& text) {
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text.endsWith("inf")) return text.startsWith('-') ? -INFINITY : INFINITY;
    return text.toDouble();
}

Tensor tensorOf(const std::vector<double>& values, DType dtype, Dims sizes) {
    Tensor tensor = Tensor::zeros(dtype, std::move(sizes));
    storeElements(dtype, tensor.data(), 1, static_cast<int64_t>(values.size()), values.data());
    return tensor;
}

Dims dimsOf(const QJsonValue& json) {
    Dims sizes;
    for (const auto& size : json.toArray()) sizes.push_back(size.toInt());
    return sizes;
}
DType dtypeOf(const QJsonValue& json) { return *dtypeFromTorchName(json.toString().toStdString()); }

Tensor tensorOf(const QJsonValue& json) {
    if (json.isNull()) return {};
    std::vector<double> values;
    for (const auto& value : json["values"].toArray()) values.push_back(numberOf(value.toString()));
    return tensorOf(values, dtypeOf(json["dtype"]), dimsOf(json["sizes"]));
}

struct SameCase {
    Tensor reference, result, wide;
};
SameCase caseOf(const QJsonObject& json) {
    if (!json.contains("made")) return {tensorOf(json["reference"]), tensorOf(json["result"]), tensorOf(json["wide"])};
    const QJsonValue made = json["made"];
    const Dims sizes = dimsOf(made["shape"]);
    const DType dtype = dtypeOf(made["dtype"]);
    const double unit = made["unit"].toDouble(), factor = made["factor"].toDouble();
    std::vector<double> exact, reference, result;
    for (int64_t i = 0; i < numel(sizes); ++i) {
        exact.push_back(static_cast<double>(i * 37 % 64) / 16 - 2);
        const double sign = i % 2 == 0 ? 1 : -1;
        reference.push_back(exact.back() + unit * sign);
        result.push_back(exact.back() + factor * unit * sign);
    }
    return {tensorOf(reference, dtype, sizes), tensorOf(result, dtype, sizes), tensorOf(exact, DType::F64, sizes)};
}

JudgeOptions optionsOf(const QJsonObject& json) {
    JudgeOptions options;
    options.judge = Judge::Same;
    options.tolerance = json["tol"].toDouble();
    options.equalNan = json["equal_nan"].toBool(false);
    options.exactDtype = json["exact_dtype"].toBool(true);
    options.cosineSimilarity = json["cos_similarity"].toBool();
    options.ignoreNonFloat = json["ignore_non_fp"].toBool();
    options.largerMultiplierForSmallTensors = json["use_larger_multiplier_for_smaller_tensor"].toBool();
    options.maxMultiplier = json["force_max_multiplier"].toBool();
    options.iouForBool = json["use_iou_for_bool"].toBool();
    options.iouThreshold = json["iou_threshold"].toDouble(0.99);
    return options;
}

}  // namespace

class SameTest : public QObject {
    Q_OBJECT

  private slots:
    void answersAsPyTorch_data() {
        QTest::addColumn<QJsonObject>("one");
        QFile file(QStringLiteral(CUTAWAY_SOURCE_DIR "/tests/data/same.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonArray cases = QJsonDocument::fromJson(file.readAll()).array();
        QVERIFY(cases.size() > 100);
        for (qsizetype i = 0; i < cases.size(); ++i)
            QTest::addRow("%lld %s", i, qPrintable(cases[i].toObject()["name"].toString())) << cases[i].toObject();
    }
    void answersAsPyTorch() {
        QFETCH(QJsonObject, one);
        const SameCase pair = caseOf(one);
        const SameAnswer answer = same(pair.reference, pair.result, pair.wide, optionsOf(one["options"].toObject()));
        QCOMPARE(answer.same, one["same"].toBool());
        QCOMPARE(answer.why.empty(), answer.same);
    }

    void lists_data() {
        QTest::addColumn<int>("results");
        QTest::addColumn<double>("last");
        QTest::addColumn<QString>("why");
        QTest::newRow("SAME-1 as long and the same") << 2 << 1.0 << "";
        QTest::newRow("SAME-1 shorter") << 1 << 1.0 << "1 values instead of 2";
        QTest::newRow("SAME-1 one differs") << 2 << 2.0 << "value 2: ";
    }
    void lists() {
        QFETCH(int, results);
        QFETCH(double, last);
        QFETCH(QString, why);
        const std::vector<Tensor> expected(2, tensorOf({1}, DType::F32, {1}));
        std::vector<Tensor> got(static_cast<size_t>(results), expected[0]);
        got.back() = tensorOf({last}, DType::F32, {1});
        const SameAnswer answer = same(expected, got, {}, {});
        QCOMPARE(answer.same, why.isEmpty());
        QVERIFY2(QString::fromStdString(answer.why).startsWith(why), answer.why.c_str());
    }
};

CUTAWAY_SUITE(SameTest)
#include "same_test.moc"
