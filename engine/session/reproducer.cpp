#include "engine/session/reproducer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cutaway/backends.h"
#include "cutaway/files.h"
#include "cutaway/guarded.h"
#include "cutaway/reproducer.h"
#include "engine/cache/value_store.h"
#include "engine/formats/json.h"
#include "engine/session/session_bisect.h"
#include "engine/support/hash.h"
#include "engine/support/shell_words.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr size_t kKept = 20;                     // folders
constexpr uintmax_t kLargestCopy = 64ull << 20;  // bytes of a file that could not be opened
constexpr std::string_view kReproGraph = "graph.py", kFacts = "repro.json", kInput = "input";

std::string folderOfAll() {
    const char* given = std::getenv("CUTAWAY_REPROS");
    if (given && std::string_view(given) == "off") return {};
    if (given && *given) return given;
    const std::string store = ValueStore::defaultPath();
    return store.empty() ? std::string() : (fs::path(store).parent_path() / "repros").string();
}

/// The shortest text that reads back as the same number.
std::string numberText(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string factsOf(const Failure& failure, std::string_view input) {
    std::string out = "{\n \"version\": " + std::to_string(kVersion) +
                      ",\n \"operation\": " + jsonString(failure.operation) +
                      ",\n \"request\": " + jsonString(failure.request.text()) + ",\n \"input\": " + jsonString(input);
    if (failure.run)
        out += ",\n \"backend\": " + jsonString(backendName(failure.run->backend)) +
               ",\n \"repeat\": " + std::to_string(failure.run->repeat) + ",\n \"seed\": 0";
    if (failure.bisect)
        out += ",\n \"check\": " + jsonString(nameOf(failure.bisect->check)) +
               ",\n \"tolerance\": " + jsonString(numberText(failure.bisect->tolerance));
    out += ",\n \"error\": " + jsonString(failure.error.text()) + ",\n \"answers\": [";
    for (size_t i = 0; i < failure.measurements.size(); ++i) {
        const Measurement& one = failure.measurements[i];
        out += (i ? ",\n  " : "\n  ");
        out += "{\"kind\": " + jsonString(one.kind) + ", \"question\": " + jsonString(one.question) +
               ", \"value\": " + (one.value ? jsonString(numberText(*one.value)) : "null") + "}";
    }
    return out + (failure.measurements.empty() ? "]\n}\n" : "\n ]\n}\n");
}

Result<void> write(const fs::path& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    if (!out.flush()) return Error{ErrorCode::ToolFailed, "cannot write the file", path.string(), {}};
    return {};
}

void dropOldest(const fs::path& all) {
    std::vector<std::pair<fs::file_time_type, fs::path>> folders;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(all, ignored))
        if (fs::exists(entry.path() / kFacts, ignored))
            folders.emplace_back(fs::last_write_time(entry.path() / kFacts, ignored), entry.path());
    std::sort(folders.begin(), folders.end());
    for (size_t i = 0; i + kKept < folders.size(); ++i) fs::remove_all(folders[i].second, ignored);
}

/// The folder that was written.
Result<std::string> writeFolder(const Failure& failure) {
    const std::string all = folderOfAll();
    if (all.empty()) return Error{ErrorCode::NotFound, "no folder for reproducers", {}, {}};
    const std::string graph = failure.graph ? printText(*failure.graph).text : std::string();
    Hasher hash;
    hash.add(graph).add(failure.file).add(failure.request.text()).add(failure.error.message);
    const fs::path folder = fs::path(all) / (failure.operation + "-" + hash.finish().hex().substr(0, 12));
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), folder.string(), {}};
    std::string input(kReproGraph);
    if (failure.graph) {
        CT_TRY_VOID(write(folder / kReproGraph, graph));
    } else {
        input = failure.file;
        const bool small =
            fs::is_regular_file(failure.file, error) && fs::file_size(failure.file, error) <= kLargestCopy;
        if (small) {
            input = std::string(kInput) + fs::path(failure.file).extension().string();
            fs::copy_file(failure.file, folder / input, fs::copy_options::overwrite_existing, error);
        }
    }
    CT_TRY_VOID(write(folder / kFacts, factsOf(failure, input)));
    dropOldest(all);
    return folder.string();
}

/// The error without the notes, which name folders.
std::string sentenceOf(const std::string& error) { return error.substr(0, error.find('\n')); }

struct Facts {
    std::string operation, input, error;
    CompileRequest request;
    std::vector<Measurement> measurements;
    RunOptions run;
    BisectOptions bisect;
};

Result<Facts> readFacts(const std::string& folder) {
    const std::string path = (fs::path(folder) / kFacts).string();
    CT_TRY(const std::string text, readTextFile(path, kMaxSettingsFile));
    CT_TRY(const auto document, parseJson(text, path));
    const Json& root = document->root;
    CT_TRY(const int64_t version, root.integerAt("version", path));
    if (version != kVersion)
        return unsupported("the reproducer is of version " + std::to_string(version) +
                               ", and this program knows version " + std::to_string(kVersion),
                           path, {"run it with the Cutaway that wrote it"});
    Facts facts;
    CT_TRY(facts.operation, root.textAt("operation", path));
    CT_TRY(facts.input, root.textAt("input", path));
    CT_TRY(facts.error, root.textAt("error", path));
    CT_TRY(const std::string_view request, root.textAt("request", path));
    CT_TRY(facts.request, parseRequest(request));
    if (root.find("backend")) {
        CT_TRY(const std::string_view backend, root.textAt("backend", path));
        CT_TRY(facts.run.backend, backendNamed(backend));
    }
    if (const auto repeat = root.find("repeat"))
        facts.run.repeat = static_cast<int>(std::clamp<int64_t>(repeat->integer().value_or(1), 1, 1000));
    if (const auto check = root.find("check"))
        for (const BisectCheck each : {BisectCheck::Numbers, BisectCheck::Nan})
            if (check->text() == nameOf(each)) facts.bisect.check = each;
    if (const auto tolerance = root.find("tolerance"); tolerance && tolerance->text())
        std::from_chars(tolerance->text()->data(), tolerance->text()->data() + tolerance->text()->size(),
                        facts.bisect.tolerance);
    CT_TRY(const Json measurements, root.arrayAt("answers", path));
    for (const Json one : measurements.items()) {
        Measurement& answer = facts.measurements.emplace_back();
        CT_TRY(answer.kind, one.textAt("kind", path));
        CT_TRY(answer.question, one.textAt("question", path));
        const auto value = one.find("value");
        if (!value || !value->text()) continue;
        double number = 0;
        const std::string_view digits = *value->text();
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
        answer.value = number;
    }
    return facts;
}

/// Gives the recorded measurements: to each question its own in turn, then always its last.
CompileHooks recordedHooks(const std::vector<Measurement>& measurements, const CompileHooks& lent) {
    struct Record {
        std::map<std::pair<std::string, std::string>, std::vector<std::optional<double>>> values;
        std::map<std::pair<std::string, std::string>, size_t> asked;
    };
    const auto record = std::make_shared<Record>();
    for (const Measurement& one : measurements) record->values[{one.kind, one.question}].push_back(one.value);
    const auto answer = [record](const char* kind) {
        return [record, kind](const std::string& question) -> std::optional<double> {
            const std::pair key{std::string(kind), question};
            const auto found = record->values.find(key);
            if (found == record->values.end()) return std::nullopt;
            return found->second[std::min(record->asked[key]++, found->second.size() - 1)];
        };
    };
    CompileHooks hooks = lent;
    hooks.timeGraph = answer("time");
    hooks.deviceFact = answer("fact");
    hooks.recall = answer("recall");
    hooks.remember = [](const std::string&, double) {};
    hooks.cacheFile = "off";
    return hooks;
}

/// The error that the operation ends with now; "" if it ends well.
std::string outcome(const Facts& facts, const std::string& folder, const CompileHooks& hooks,
                    const Progress& progress) {
    Session session;
    const std::string path =
        fs::path(facts.input).is_absolute() ? facts.input : (fs::path(folder) / facts.input).string();
    if (const auto opened = session.open(path, progress); !opened) return opened.error().text();
    if (facts.operation == "open") return {};
    const auto run = session.compile(facts.request, hooks, progress);
    if (!run) return run.error().text();
    const auto steps = session.steps(*run);
    if (steps && !steps->empty() && steps->back().state == StepState::Failed) return steps->back().error;
    if (facts.operation == "build") {
        const auto built = session.build(*run, facts.request.target, progress);
        return built ? std::string() : built.error().text();
    }
    if (facts.operation == "bisect") {
        const auto found = bisectRecorded(session.state(), *run, facts.bisect, {}, progress);
        return found ? std::string() : found.error().text();
    }
    if (facts.operation == "check-numbers") {
        const auto checked = session.checkNumbers(*run, {.tolerance = facts.bisect.tolerance}, progress);
        return checked ? std::string() : checked.error().text();
    }
    if (facts.operation != "run") return {};
    const auto ran = session.run(*run, facts.run, progress);
    return ran ? std::string() : ran.error().text();
}

}  // namespace

bool isReproducible(const Error& error) {
    return error.code == ErrorCode::Internal || error.code == ErrorCode::Limit || error.code == ErrorCode::ToolFailed;
}

Error noteReproducer(const Failure& failure) {
    const auto folder = writeFolder(failure);
    Error error = failure.error;
    if (folder) error.notes.push_back("to repeat it: cutaway-cli run-repro " + shellWord(*folder));
    return error;
}

Result<ReproducerReport> repeatFailure(const std::string& folder, const CompileHooks& hooks, const Progress& progress) {
    CT_TRY(const Facts facts, readFacts(folder));
    ReproducerReport report;
    report.operation = facts.operation;
    report.recorded = facts.error;
    report.now = outcome(facts, folder, recordedHooks(facts.measurements, hooks), progress);
    report.repeated = facts.operation == "open"
                          ? !report.now.empty()
                          : !report.now.empty() && sentenceOf(report.now) == sentenceOf(report.recorded);
    return report;
}

}  // namespace cutaway
