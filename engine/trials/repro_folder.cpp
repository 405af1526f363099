#include "engine/trials/repro_folder.h"

#include <fcntl.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "cutaway/backends.h"
#include "cutaway/files.h"
#include "cutaway/guarded.h"
#include "cutaway/reproducer.h"
#include "cutaway/version.h"
#include "engine/formats/json.h"
#include "engine/formats/safetensors.h"
#include "engine/session/reproducer.h"
#include "engine/support/files.h"
#include "engine/support/shell_words.h"
#include "engine/text/parse.h"
#include "engine/trials/testers.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr const char *kGraph = "graph.py", *kPython = "repro.py", *kInputs = "inputs.safetensors",
                     *kFacts = "repro.json", *kPage = "README.md";
constexpr std::string_view kOperation = "minified";
constexpr std::string_view kConstant = "constant:";  // before the names of parameters and buffers

constexpr std::pair<TrialCheck::Level, std::string_view> kLevels[] = {{TrialCheck::Level::Compiles, "compiles"},
                                                                      {TrialCheck::Level::Runs, "runs"},
                                                                      {TrialCheck::Level::Numbers, "numbers"},
                                                                      {TrialCheck::Level::NonFinite, "nan"}};

std::string numberText(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string factsOf(const ReproFolder& repro) {
    std::string_view levelName;
    for (const auto& [level, name] : kLevels)
        if (level == repro.job.check.level) levelName = name;
    return "{\n \"version\": " + std::to_string(kVersion) + ",\n \"operation\": " + jsonString(kOperation) +
           ",\n \"cutaway\": " + jsonString(version()) + ",\n \"request\": " + jsonString(repro.job.request.text()) +
           ",\n \"check\": " + jsonString(repro.command.empty() ? levelName : "command") +
           ",\n \"backend\": " + jsonString(backendName(repro.job.check.backend)) +
           ",\n \"stage\": " + jsonString(repro.job.stage) +
           ",\n \"tolerance\": " + numberText(repro.job.check.tolerance) +
           ",\n \"judge\": " + jsonString(repro.job.check.judge) + ",\n \"command\": " + jsonString(repro.command) +
           ",\n \"match\": " + jsonString(repro.match) + ",\n \"timeout\": " + numberText(repro.timeoutSeconds) +
           ",\n \"memory\": " + std::to_string(repro.memoryBytes) +
           ",\n \"repeats\": " + std::to_string(repro.repeats) +
           ",\n \"signature\": " + jsonString(repro.signature.text()) + ",\n \"error\": " + jsonString(repro.detail) +
           ",\n \"input\": " + jsonString(kGraph) + ",\n \"origin\": " + jsonString(repro.origin) + "\n}\n";
}

std::string pageOf(const ReproFolder& repro, const std::string& name) {
    std::string out = "# A failure, minified\n\n" + repro.signature.title() + "\n\n" + repro.detail +
                      "\n\nTaken from " + repro.origin + ".\n\n## To repeat it\n\n    cutaway-cli run-repro " +
                      shellWord(name) + "\n\nCompiled with: `" +
                      (repro.job.request.text().empty() ? "the default options" : repro.job.request.text()) + "`\n";
    // What bisecting can do with it: its inputs are a plain file if nothing but inputs is in it.
    if (repro.command.empty() && repro.job.constants.empty()) {
        const std::string check = repro.job.check.level == TrialCheck::Level::Numbers     ? "numbers"
                                  : repro.job.check.level == TrialCheck::Level::NonFinite ? "nan"
                                                                                          : "crash";
        out += "\n## To find the rewrite that is to blame\n\n    cutaway-cli bisect " + shellWord(name + "/graph.py") +
               " --check " + check;
        if (!repro.job.check.judge.empty()) out += " --judge " + shellWord(repro.job.check.judge);
        if (check != "crash" && !repro.job.inputs.empty())
            out += " --inputs " + shellWord(name + "/inputs.safetensors");
        if (!repro.job.request.text().empty()) out += " " + repro.job.request.text();
        out += "\n";
    }
    if (!repro.command.empty()) out += "\nThe command that fails: `" + repro.command + "`\n";
    out +=
        "\n| file | holds |\n|---|---|\n| `graph.py` | the graph, for Cutaway |\n| `repro.py` | the graph, for "
        "PyTorch: `python repro.py` runs it |\n| `inputs.safetensors` | the inputs that it fails with |\n| "
        "`repro.json` | how it was tried, and the signature of the failure |\n";
    for (const std::string& remark : repro.remarks) out += "\n" + remark + ".\n";
    return out + "\n## The graph\n\n```python\n" + repro.job.graph + "```\n";
}

SafeTensors inputsOf(const ReproFolder& repro, const Module& module, int64_t mostBytes) {
    SafeTensors file;
    std::vector<Tensor> all;
    size_t next = 0;
    const std::vector<Node*> inputs = module.graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i)
        if (module.inputs[i].isGiven() && next < repro.job.inputs.size())
            if (const Tensor& value = repro.job.inputs[next++]; value.defined())
                file.tensors.emplace_back(inputs[i]->name(), value);
    for (const auto& [name, tensor] : repro.job.constants)
        if (tensor.defined()) file.tensors.emplace_back(std::string(kConstant) + name, tensor);
    for (const auto& [name, tensor] : file.tensors) all.push_back(tensor);
    if (bytesOf(all) > mostBytes) return {};
    return file;
}

Result<void> writeAll(const fs::path& folder, const ReproFolder& repro, int64_t mostBytes, const std::string& name) {
    CT_TRY_VOID(writeFile((folder / kGraph).string(), repro.job.graph));
    CT_TRY(const auto module, parseText(repro.job.graph));
    const SafeTensors inputs = inputsOf(repro, *module, mostBytes);
    if (!inputs.tensors.empty()) CT_TRY_VOID(writeSafeTensors((folder / kInputs).string(), inputs));
    // A graph that PyTorch could not take (an operator of ours, an input of no known type) is there for Cutaway alone.
    if (const auto python = runnableOf(repro.job)) CT_TRY_VOID(writeFile((folder / kPython).string(), *python));
    CT_TRY_VOID(writeFile((folder / kPage).string(), pageOf(repro, name)));
    return writeFile((folder / kFacts).string(), factsOf(repro));
}

}  // namespace

Result<void> writeRepro(const std::string& folder, const ReproFolder& repro, int64_t mostBytes) {
    const fs::path target(folder), fresh(folder + ".new");
    std::error_code error;
    fs::remove_all(fresh, error);
    fs::create_directories(fresh, error);
    if (error) return Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), folder, {}};
    CT_TRY_VOID(writeAll(fresh, repro, mostBytes, folder));
    // At every moment one of the two is there, whole.
    if (!fs::exists(target, error)) fs::rename(fresh, target, error);
    else if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0)
        error = std::error_code(errno, std::generic_category());
    if (error) return Error{ErrorCode::ToolFailed, "cannot put the folder in place: " + error.message(), folder, {}};
    fs::remove_all(fresh, error);
    return {};
}

bool isReproFolder(const std::string& folder) {
    const auto text = readTextFile((fs::path(folder) / kFacts).string(), kMaxSettingsFile);
    if (!text) return false;
    const auto document = parseJson(*text, folder);
    const auto operation = document ? (*document)->root.find("operation") : std::nullopt;
    return operation && operation->text() == kOperation;
}

Result<ReproFolder> readRepro(const std::string& folder) {
    const std::string path = (fs::path(folder) / kFacts).string();
    CT_TRY(const std::string text, readTextFile(path, kMaxSettingsFile));
    CT_TRY(const auto document, parseJson(text, path));
    const Json& root = document->root;
    CT_TRY(const int64_t written, root.integerAt("version", path));
    if (written != kVersion)
        return unsupported("the folder is of version " + std::to_string(written) + ", and this program knows version " +
                               std::to_string(kVersion),
                           path, {"run it with the Cutaway that wrote it"});
    ReproFolder repro;
    CT_TRY(const std::string_view request, root.textAt("request", path));
    CT_TRY(repro.job.request, parseRequest(request));
    CT_TRY(const std::string_view signature, root.textAt("signature", path));
    CT_TRY(repro.signature, parseSignature(signature));
    CT_TRY(repro.detail, root.textAt("error", path));
    CT_TRY(repro.command, root.textAt("command", path));
    CT_TRY(repro.match, root.textAt("match", path));
    CT_TRY(repro.origin, root.textAt("origin", path));
    CT_TRY(const std::string_view check, root.textAt("check", path));
    for (const auto& [level, name] : kLevels)
        if (name == check) repro.job.check.level = level;
    // Folders of earlier versions do not say it.
    if (const auto stage = root.find("stage")) repro.job.stage = stage->text().value_or(std::string_view());
    if (const auto judge = root.find("judge")) repro.job.check.judge = judge->text().value_or(std::string_view());
    repro.job.check.pass = repro.signature.pass;
    repro.job.check.namesPass = !repro.signature.pass.empty();
    CT_TRY(const std::string_view backend, root.textAt("backend", path));
    CT_TRY(repro.job.check.backend, backendNamed(backend));
    const auto number = [&](const char* key, double fallback) {
        const auto value = root.find(key);
        return value ? value->real().value_or(fallback) : fallback;
    };
    repro.job.check.tolerance = number("tolerance", 1e-4);
    repro.timeoutSeconds = number("timeout", 60);
    repro.memoryBytes = static_cast<int64_t>(number("memory", 0));
    repro.repeats = static_cast<int>(number("repeats", 1));
    CT_TRY(repro.job.graph, readTextFile((fs::path(folder) / kGraph).string(), size_t{256} << 20));
    CT_TRY(const auto module, parseText(repro.job.graph));
    std::map<std::string, Tensor> held;
    const std::string inputs = (fs::path(folder) / kInputs).string();
    if (std::error_code ignored; fs::exists(inputs, ignored)) {
        CT_TRY(const SafeTensors file, readSafeTensors(inputs));
        for (const auto& [name, tensor] : file.tensors) {
            if (name.starts_with(kConstant)) repro.job.constants.emplace_back(name.substr(kConstant.size()), tensor);
            else held[name] = tensor;
        }
    }
    const std::vector<Node*> placeholders = module->graph().placeholders();
    for (size_t i = 0; i < placeholders.size() && !held.empty(); ++i)
        if (module->inputs[i].isGiven()) repro.job.inputs.push_back(held[placeholders[i]->name()]);
    return repro;
}

Result<TrialOutcome> tryRepro(const ReproFolder& repro, const Progress& progress) {
    const TrialLimits limits{repro.timeoutSeconds, repro.memoryBytes};
    const auto nothing = std::make_shared<const TensorTable>();
    CT_TRY(const auto tester, (repro.command.empty() ? forkingTesters(nothing, limits)
                                                     : commandTesters(repro.command, repro.match, limits))());
    Result<TrialOutcome> outcome = Error{};
    for (int i = 0; i < std::max(1, repro.repeats); ++i) {
        outcome = tester->test(repro.job, progress);
        if (!outcome || (outcome->failure && isSameFailure(repro.signature, *outcome->failure))) return outcome;
    }
    return outcome;
}

Result<ReproducerReport> runReproducer(const std::string& given, const CompileHooks& hooks, const Progress& progress) {
    return guarded([&]() -> Result<ReproducerReport> {
        // The user may name the folder of a minification, whose result is in "best".
        const std::string best = (fs::path(given) / "best").string();
        const std::string folder = !isReproFolder(given) && isReproFolder(best) ? best : given;
        if (!isReproFolder(folder)) return repeatFailure(folder, hooks, progress);
        CT_TRY(const ReproFolder repro, readRepro(folder));
        CT_TRY(const TrialOutcome outcome, tryRepro(repro, progress));
        ReproducerReport report;
        report.operation = kOperation;
        report.recorded = repro.signature.title();
        report.now = outcome.failure ? outcome.failure->title() : std::string();
        report.repeated = outcome.failure && isSameFailure(repro.signature, *outcome.failure);
        return report;
    });
}

}  // namespace cutaway
