// The table of settings: complete, and what is not in it is refused by name.
#include "cutaway/settings.h"

#include <QDirIterator>
#include <QRegularExpression>
#include <QtTest>
#include <set>

#include "cutaway/release_table.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/request_names.h"
#include "engine/support/pytorch_options.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

bool isSetting(const QString& key) {
    const auto all = settings();
    return std::any_of(all.begin(), all.end(), [&](const Setting& setting) {
        return QString::fromUtf8(setting.key.data(), qsizetype(setting.key.size())) == key;
    });
}

}  // namespace

class SettingsTest : public QObject {
    Q_OBJECT

  private slots:
    /// Every key that a pass reads by its name stands in the table.
    void readsAreInTheTable() {
        static const QRegularExpression read(
            "ettings(?:Of\\([^()]*\\))?(?:\\.|->)(?:flag|number)\\(\"(\\w+)\"|\\bsetting\\(\"(\\w+)\"|deviceFact\\(\\w+, (?:\\w+, )?\"(\\w+)\"|"
            "(?:wanted|large|given|device)(?:\\.|->)(?:flag|number)\\(\"(\\w+)\"");
        QStringList found, missing;
        QDirIterator files(QStringLiteral(CUTAWAY_SOURCE_DIR "/engine/passes"), {"*.cpp"}, QDir::Files,
                           QDirIterator::Subdirectories);
        while (files.hasNext()) {
            QFile file(files.next());
            QVERIFY(file.open(QIODevice::ReadOnly));
            auto matches = read.globalMatch(QString::fromUtf8(file.readAll()));
            while (matches.hasNext()) {
                const auto match = matches.next();
                for (int i = 1; i <= match.lastCapturedIndex(); ++i)
                    if (!match.captured(i).isEmpty())
                        (isSetting(match.captured(i)) ? found : missing) << match.captured(i);
            }
        }
        QVERIFY2(missing.isEmpty(), qPrintable(missing.join(", ")));
        QVERIFY2(found.size() > 50, qPrintable(found.join(", ")));
        QVERIFY(found.contains("capability") && found.contains("counter") && found.contains("max_fuse_set_size") &&
                found.contains("cpu_max_first_dimension_decomposition"));
    }

    /// Owners are names that --enable takes, and each setting stands once for each of them.
    void ownersAreEnabledByName() {
        const auto module = parseText("def forward(x: \"f32[2]\"):\n    return (x,)\n");
        QVERIFY(module.has_value());
        const Snapshot graph = std::make_shared<const Module>(**module);
        QSet<QString> seen;
        for (const Setting& setting : settings()) {
            QVERIFY(!setting.what.empty() && setting.what.ends_with('.') && !setting.initial.empty());
            for (const QString& owner : QString::fromUtf8(setting.owners.data(), qsizetype(setting.owners.size()))
                                            .split(' ', Qt::SkipEmptyParts)) {
                const QString both = owner + "/" + QString::fromUtf8(setting.key.data(), qsizetype(setting.key.size()));
                QVERIFY2(!seen.contains(both), qPrintable(both));
                seen.insert(both);
                if (owner.toStdString() == kRequest) continue;
                CompileRequest options;
                options.enabledPasses.push_back({owner.toStdString(), {}});
                const auto trace = runPipeline(graph, options);
                QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
            }
        }
    }

    /// An option of PyTorch is added, changed and dropped once a release at most, and the table of releases says what
    /// stands for it here.
    void optionsOfReleases() {
        std::set<std::pair<Release, std::string_view>> seen;
        for (const OptionRow& row : pytorchOptions()) {
            QVERIFY2(seen.emplace(row.release, row.name).second, std::string(row.name).c_str());
            QVERIFY2(row.release != kOldestRelease, std::string(row.name).c_str());
            QCOMPARE(row.value.empty(), row.change == OptionChange::Removed);
            QCOMPARE(row.before.empty(), row.change != OptionChange::Changed);
        }
        const std::vector<ReleaseEntry> table = releaseTable();
        const auto what = [&](const char* release, const char* name) {
            for (const ReleaseEntry& entry : table)
                if (releaseName(entry.release) == release && entry.name == name)
                    return QString::fromStdString(entry.kind + ": " + entry.what);
            return QString();
        };
        QCOMPARE(what("2.14", "inductor.strict_signed_zero"), "option: is new, initially False");
        QCOMPARE(what("2.13", "inductor.intra_node_bw"),
                 "option: is initially None, not 300; here a setting of overlap_scheduling");
        QCOMPARE(what("2.12", "inductor.autoheuristic_use"), "option: is gone");
        QCOMPARE(what("2.15", "deduplicate_wait_tensors"), "pass: Waits once for what several calls wait for");
        QCOMPARE(what("2.13", "decomp_comms"), "pass: not here; in PyTorch it asks the process group for the rank");
        QCOMPARE(what("2.14", "reorder_for_locality_in_training"),
                 "setting: Runs reorder_for_locality in training, too");
    }
    /// A pass, a switch and a setting that the release lacks.
    void lackedByTheRelease_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("since");
        const auto row = [](const char* text, const char* since) { QTest::newRow(text) << text << since; };
        row("dedup_reduce_scatters", "2.13");
        row("var_std_reduction_dedup", "2.15");
        row("reorder_for_locality_in_training", "2.14");
        row("keep_addmm_fused_for_half_dtypes=value:false", "2.12");
    }
    void lackedByTheRelease() {
        QFETCH(QString, text);
        QFETCH(QString, since);
        CompileRequest request;
        request.enabledPasses = {*parseOptionalPass(text.toStdString())};
        for (const Release release : kReleaseList) {
            request.pytorch = release;
            const auto checked = checkNames(request);
            QCOMPARE(checked.has_value(), release >= *releaseOf(since.toStdString()));
            if (!checked)
                QVERIFY2(checked.error().text().find("since " + since.toStdString()) != std::string::npos,
                         checked.error().text().c_str());
        }
    }
    void checks_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* text, const char* problem) { QTest::newRow(text) << text << problem; };
        row("split_cat_pass=counter:3", "");
        row("overlap_scheduling=gpu:h100,tf32:true,intra_node_bw:0.5", "");
        row("pad_mm=decisions:somewhere/decisions.json", "");
        row("auto_chunker=num_chunk:8,output_size_threshold:1048576,amplify_ratio_threshold:0.1", "");
        row("split_cat_pass=nosuch:3", "'split_cat_pass' has no setting 'nosuch'");
        row("auto_chunker=num_chunks:3", "did you mean num_chunk?");
        row("split_cat_pass=threshold_to_cat:3", "'split_cat_pass' has no setting");
        row("overlap_scheduling=insert_overlap_deps:maybe", "has no setting 'insert_overlap_deps'");
        row("overlap_scheduling=collective_bucketing:maybe", "is true or false, not 'maybe'");
        row("overlap_scheduling=gpu:h1000", "is one of v100 a100 h100 b200, not 'h1000'");
        row("overlap_scheduling=group_size:0", "is a whole number from 1 on, not '0'");
        row("auto_chunker=num_chunk:2.5", "is a whole number from 1 on, not '2.5'");
        row("fx_passes_numeric_check=num_iterations:101", "is a whole number from 1 to 100, not '101'");
        row("fx_passes_numeric_check=precision:nan", "is a number from 0 on, not 'nan'");
        row("partitioned_scatter=memory_budget:", "is a number from 0 to 1, not ''");
        row("pad_mm=decisions:", "is the name of a file, not ''");
        row("auto_chunker=num_chunk:2,num_chunk:3", "is given twice");
    }
    void checks() {
        QFETCH(QString, text);
        QFETCH(QString, problem);
        const auto wanted = parseOptionalPass(text.toStdString());
        QVERIFY(wanted.has_value());
        const auto checked = checkSettings(*wanted);
        QCOMPARE(checked.has_value(), problem.isEmpty());
        if (!checked)
            QVERIFY2(QString::fromStdString(checked.error().text()).contains(problem), checked.error().text().c_str());
    }

    void textThatIsNoSetting_data() {
        QTest::addColumn<QString>("text");
        for (const char* text : {"", "=", "split_cat_pass=", "=a:1", "a=b", "a=b:1,", "a=,b:1", "a=:1"})
            QTest::newRow(text) << text;
    }
    void textThatIsNoSetting() {
        QFETCH(QString, text);
        QVERIFY(!parseOptionalPass(text.toStdString()).has_value());
    }
};

CUTAWAY_SUITE(SettingsTest)
#include "settings_test.moc"
