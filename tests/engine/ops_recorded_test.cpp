// Every op sample against what PyTorch computed for it: dtype, sizes, strides and values. The files in tests/data/ops
// are made by tests/scripts/record_ops.py; samples added since then are skipped until it is run again.
#include <QtTest>
#include <map>

#include "engine/formats/safetensors.h"
#include "engine/ops/op_registry.h"
#include "tests/support/op_samples.h"
#include "tests/support/paths.h"

using namespace cutaway;
using namespace cutaway::testing;

class OpsRecordedTest : public QObject {
    Q_OBJECT

    std::map<std::string, Tensor> m_tensors;
    std::map<std::string, std::string> m_metadata;

    bool load() {
        if (!m_tensors.empty()) return true;
        auto file = readSafeTensors(testFile("data/ops/results.safetensors").toStdString());
        if (!file) return false;
        for (auto& [name, tensor] : file->tensors) m_tensors.emplace(name, tensor);
        for (auto& [key, value] : file->metadata) m_metadata.emplace(key, value);
        return true;
    }
    Dims recordedStrides(const std::string& key) const {
        const auto found = m_metadata.find("strides " + key);
        if (found == m_metadata.end()) return contiguousStrides(m_tensors.at(key).sizes());
        Dims strides;
        for (const QString& part : QString::fromStdString(found->second).split(',')) strides.push_back(part.toLongLong());
        return strides;
    }

  private slots:
    void matchesRecord_data() {
        QVERIFY(load());
        QTest::addColumn<QString>("op");
        QTest::addColumn<QString>("text");
        for (const Op* op : allOps()) {
            if (op->functional() != nullptr) continue;
            for (const OpSample& sample : samplesOf(*op))
                if (const auto found = m_metadata.find("sample " + sample.name()); found != m_metadata.end() && found->second == sample.text)
                    QTest::newRow(sample.name().c_str()) << QString::fromStdString(op->name()) << QString::fromStdString(sample.text);
        }
    }
    void matchesRecord() {
        QFETCH(QString, op);
        QFETCH(QString, text);
        const Op& row = requireOp(op.toStdString());
        auto sample = buildSample(row, text.toStdString());
        QVERIFY2(sample, sample ? "" : sample.error().message.c_str());
        NodeValues values;
        for (size_t i = 0; i < (*sample)->placeholders.size(); ++i) values.set(*(*sample)->placeholders[i], {(*sample)->inputs[i]});
        auto results = evaluateNode(*(*sample)->call, values);
        if (!results && results.error().message.find("no op table has a row for") != std::string::npos) QSKIP(results.error().message.c_str());
        QVERIFY2(results, results ? "" : results.error().message.c_str());
        const std::string prefix = std::string(QTest::currentDataTag()) + "/";
        const bool uninitialised = op.contains("empty");
        // The kernel reads the buffer of the forward op, which a sample cannot provide; the expansion recomputes it.
        const bool needsForward = op == "aten.log_sigmoid_backward.default";
        for (size_t i = 0; i < results->size(); ++i) {
            const Tensor& actual = (*results)[i];
            const auto found = m_tensors.find(prefix + std::to_string(i));
            if (found == m_tensors.end() || !actual.defined()) continue;
            const Tensor& expected = found->second;
            QCOMPARE(std::string(info(actual.dtype()).torchName), std::string(info(expected.dtype()).torchName));
            QCOMPARE(actual.sizes(), expected.sizes());
            QCOMPARE(actual.strides(), recordedStrides(found->first));
            if (uninitialised || needsForward || row.is(Tag::Random)) continue;
            Tolerance tolerance = defaultTolerance(expected.dtype());
            if (expected.dtype() == DType::F32) tolerance = {1e-5, 1e-6};
            // Fused attention rounds the probabilities to bfloat16 before the second product.
            if (expected.dtype() == DType::BF16 && op.contains("attention")) tolerance = {2e-2, 2e-2};
            const Comparison comparison = compare(actual, expected, tolerance);
            QVERIFY2(comparison.within, ("result " + std::to_string(i) + " element " + std::to_string(comparison.worst) + " off by " +
                                         std::to_string(comparison.maxAbsoluteError)).c_str());
        }
    }
};

QTEST_GUILESS_MAIN(OpsRecordedTest)
#include "ops_recorded_test.moc"
