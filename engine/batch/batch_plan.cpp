#include "engine/batch/batch_plan.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "cutaway/backends.h"
#include "cutaway/files.h"
#include "cutaway/plugins.h"
#include "cutaway/request.h"
#include "engine/batch/batch_toml.h"
#include "engine/cache/build_id.h"
#include "engine/formats/json.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"
#include "engine/support/shell_words.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

/// Whatever is added to ids, so that results of an earlier form are not read.
constexpr std::string_view kForm = "batch 1";

Result<void> hashFile(const std::string& path, Hasher& hash) {
    CT_TRY(const auto file, InputFile::open(path));
    std::vector<std::byte> piece(size_t{1} << 20);
    for (uint64_t at = 0; at < file->size();) {
        const size_t count = static_cast<size_t>(std::min<uint64_t>(piece.size(), file->size() - at));
        CT_TRY_VOID(file->read(at, std::span(piece).first(count)));
        hash.addBytes(piece.data(), count);
        at += count;
    }
    hash.add(file->size());
    return {};
}

/// Of a file's bytes, or of all files in a folder and their names; each is read once.
class Contents {
  public:
    struct FileDigest {
        std::string hash;
        int64_t bytes = 0;
    };
    Result<FileDigest> of(const std::string& path) {
        if (const auto found = m_digests.find(path); found != m_digests.end()) return found->second;
        FileDigest digest;
        Hasher hash;
        std::error_code failed;
        if (fs::is_directory(path, failed)) {
            std::vector<fs::path> files;
            for (const auto& entry : fs::recursive_directory_iterator(path, failed))
                if (entry.is_regular_file(failed)) files.push_back(entry.path());
            if (failed) return Error{ErrorCode::ToolFailed, "cannot list the folder: " + failed.message(), path, {}};
            std::sort(files.begin(), files.end());
            for (const fs::path& file : files) {
                hash.add(file.lexically_relative(path).string());
                CT_TRY_VOID(hashFile(file.string(), hash));
                digest.bytes += static_cast<int64_t>(fs::file_size(file, failed));
            }
        } else {
            CT_TRY_VOID(hashFile(path, hash));
            digest.bytes = static_cast<int64_t>(fs::file_size(path, failed));
        }
        digest.hash = hash.finish().hex();
        return m_digests[path] = digest;
    }

  private:
    std::map<std::string, FileDigest> m_digests;
};

/// The paths of a pattern, sorted. A path without marks need not be there: opening it says why it is not.
std::vector<std::string> pathsOf(const fs::path& folder, const std::string& pattern) {
    std::string full;
    if (fs::path(pattern).is_relative()) {
        for (const char c : folder.string()) {
            if (std::string_view("*?[\\").find(c) != std::string_view::npos) full += '\\';
            full += c;
        }
        full += "/";
    }
    full += pattern;
    glob_t found{};
    std::vector<std::string> paths;
    if (::glob(full.c_str(), GLOB_ERR, nullptr, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    return paths;
}

std::string pathBeside(const std::string& model, std::string name) {
    const fs::path path(model);
    constexpr std::string_view kStem = "{stem}";
    for (size_t at; (at = name.find(kStem)) != std::string::npos;) name.replace(at, kStem.size(), path.stem().string());
    return (fs::is_directory(path) ? path / name : path.parent_path() / name).string();
}

struct Model {
    std::string path, shown;
    const BatchModels* from;
    std::string inputs, expect, gradients;
    std::vector<std::string> opening;  // words
    std::string hash, inputsHash, expectHash, gradientsHash;
    int64_t bytes = 0;
};

Result<std::vector<Model>> modelsOfBatch(const BatchText& text, const fs::path& folder, Contents& contents) {
    std::vector<Model> out;
    std::set<std::string> seen;
    for (const BatchModels& said : text.models) {
        const std::vector<std::string> paths = pathsOf(folder, said.path.value);
        if (paths.empty())
            return Error{ErrorCode::NotFound, "there is no model '" + said.path.value + "'", said.path.where, {}};
        for (const std::string& path : paths) {
            Model model{path, fs::path(path).lexically_proximate(folder).string(), &said, {}, {}, {}, {}, {}, {}, {},
                        {}};
            if (!said.graph.empty()) model.shown += " " + said.graph;
            for (const auto& [symbol, size] : said.sizes) model.shown += " " + symbol + "=" + std::to_string(size);
            if (!seen.insert(model.shown).second)
                return invalidInput("the model '" + model.shown + "' is there twice", said.path.where);
            const auto known = contents.of(path);
            if (!known) return Error{known.error().code, known.error().text(), said.path.where, {}};
            model.hash = known->hash;
            model.bytes = known->bytes;
            const auto beside = [&](const std::optional<Located<std::string>>& name, std::string& file,
                                    std::string& hash) -> Result<void> {
                if (!name) return {};
                file = pathBeside(path, name->value);
                const auto bytes = contents.of(file);
                if (!bytes) return Error{bytes.error().code, bytes.error().text(), name->where, {}};
                hash = bytes->hash;
                return {};
            };
            CT_TRY_VOID(beside(said.inputs, model.inputs, model.inputsHash));
            CT_TRY_VOID(beside(said.expect, model.expect, model.expectHash));
            CT_TRY_VOID(beside(said.gradients, model.gradients, model.gradientsHash));
            if (!said.graph.empty()) model.opening = {"--graph", said.graph};
            for (const auto& [symbol, size] : said.sizes)
                model.opening.insert(model.opening.end(), {"--size", symbol + "=" + std::to_string(size)});
            out.push_back(std::move(model));
        }
    }
    return out;
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
}

Result<BatchTask> taskOf(const BatchText& text, const Model& model, const BatchRequest& said, CompileRequest request,
                         const std::string& check) {
    const std::string backend = said.backend.empty() ? text.backend : said.backend;
    if (backend == "cuda") request.target = Target::Cuda;
    if (check == "freeze") {
        if (request.mode != Mode::Inference)
            return invalidInput("the check 'freeze' is for inference, and the request '" + said.name + "' is not",
                                said.options.where);
        request.freeze = true;
    }
    CT_TRY(std::vector<std::string> asked, shellWords(request.text()));
    append(asked, model.opening);
    BatchTask task;
    task.model = model.shown;
    task.request = said.name;
    task.check = check;
    task.seconds = text.seconds;
    task.bytes = model.bytes;
    const bool runs = check != "compile";
    Hasher hash;
    hash.add(kForm).add(std::string_view(buildId())).add(std::string_view(check)).add(model.hash);
    for (const std::string& word : asked) hash.add(word);
    task.command = {runs ? "run" : "compile", model.path};
    append(task.command, asked);
    if (!text.cache.empty()) append(task.command, {"--cache", text.cache});
    if (runs) {
        append(task.command, {"--backend", backend});
        hash.add(backend).add(model.inputsHash);
        const bool training = request.mode == Mode::Training;
        const std::string& expect = training ? model.gradients : model.expect;
        if (!model.inputs.empty()) append(task.command, {"--inputs", model.inputs});
        if (!expect.empty()) append(task.command, {training ? "--expect-gradients" : "--expect", expect});
        hash.add(training ? model.gradientsHash : model.expectHash);
    }
    hash.add(text.seconds).add(text.minify);
    if (text.minify) {
        task.minify = {"minify", model.path};
        append(task.minify, asked);
        if (runs) append(task.minify, {"--backend", backend});
        if (runs && !model.inputs.empty()) append(task.minify, {"--inputs", model.inputs});
        append(task.minify,
               {"--timeout", std::to_string(text.trialSeconds), "--max-trials", std::to_string(text.trials)});
        hash.add(text.minifySeconds).add(text.trialSeconds).add(text.trials);
        task.minifySeconds = text.minifySeconds;
    }
    task.id = hash.finish().hex();
    return task;
}

}  // namespace

Result<BatchPlan> readBatch(const std::string& file) {
    CT_TRY(const std::string bytes, readTextFile(file, kMaxSettingsFile));
    CT_TRY(const BatchText text, parseBatch(bytes, file));
    std::error_code failed;
    const fs::path path = fs::absolute(file, failed).lexically_normal(), folder = path.parent_path();
    BatchPlan plan;
    plan.name = text.name.empty() ? path.stem().string() : text.name;
    plan.folder = (folder / (text.folder.empty() ? path.stem().string() + ".batch" : text.folder)).string();
    plan.jobs = text.jobs;
    plan.retries = text.retries;
    plan.slurm = text.slurm;
    Contents contents;
    CT_TRY(const std::vector<Model> models, modelsOfBatch(text, folder, contents));
    for (const Model& model : models)
        for (const BatchRequest& said : text.requests) {
            const auto placed = [&](const Error& error) {
                return Error{error.code, error.message, said.options.where, error.notes};
            };
            auto asked = parseRequest(said.options.value);
            if (!asked) return placed(asked.error());
            auto request = withPlugins(std::move(*asked));
            if (!request) return placed(request.error());
            for (const std::string& check : said.checks.empty() ? text.checks : said.checks) {
                CT_TRY(plan.tasks.emplace_back(), taskOf(text, model, said, *request, check));
            }
        }
    return plan;
}

// -- the folder

fs::path batchTaskFolder(const std::string& folder, const std::string& id) { return fs::path(folder) / "tasks" / id; }

namespace {

constexpr std::array<std::string_view, 6> kVerdicts = {"passes", "differs", "fails", "crashes", "hangs", "lost"};

std::string resultFile(const std::string& folder, const std::string& id) {
    return batchTaskFolder(folder, id).string() + ".json";
}
std::string listText(const std::vector<std::string>& words) {
    std::string out = "[";
    for (const std::string& word : words) out += (out.size() > 1 ? ", " : "") + jsonString(word);
    return out + "]";
}
std::string millisecondsText(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", seconds);
    return text;
}
Result<std::vector<std::string>> listAt(const Json& object, std::string_view key, const std::string& where) {
    CT_TRY(const Json list, object.arrayAt(key, where));
    std::vector<std::string> out;
    for (const Json item : list.items()) out.emplace_back(item.text().value_or(""));
    return out;
}

}  // namespace

std::string_view nameOf(BatchVerdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

std::optional<BatchResult> readBatchResult(const std::string& folder, const std::string& id) {
    const std::string path = resultFile(folder, id);
    std::error_code failed;
    if (!fs::exists(path, failed)) return std::nullopt;
    const auto text = readFile(path);
    if (!text) return std::nullopt;
    const auto document = parseJson(*text, path);
    if (!document) return std::nullopt;
    const Json& root = (*document)->root;
    const auto textAt = [&](std::string_view key) {
        const auto found = root.find(key);
        return std::string(found ? found->text().value_or("") : "");
    };
    const auto numberAt = [&](std::string_view key) {
        const auto found = root.find(key);
        return found ? found->real().value_or(0) : 0;
    };
    const auto verdict = std::find(kVerdicts.begin(), kVerdicts.end(), textAt("verdict"));
    if (verdict == kVerdicts.end()) return std::nullopt;
    BatchResult result;
    result.verdict = static_cast<BatchVerdict>(verdict - kVerdicts.begin());
    result.seconds = numberAt("seconds");
    result.message = textAt("message");
    result.signature = textAt("signature");
    result.reproducer = textAt("reproducer");
    result.minified = textAt("minified");
    result.minifySeconds = numberAt("minify_seconds");
    return result;
}

Result<void> writeBatchResult(const std::string& folder, const std::string& id, const BatchResult& result) {
    const std::string text =
        "{\"verdict\": " + jsonString(nameOf(result.verdict)) + ",\n \"seconds\": " + millisecondsText(result.seconds) +
        ",\n \"message\": " + jsonString(result.message) + ",\n \"signature\": " + jsonString(result.signature) +
        ",\n \"reproducer\": " + jsonString(result.reproducer) + ",\n \"minified\": " + jsonString(result.minified) +
        ",\n \"minify_seconds\": " + millisecondsText(result.minifySeconds) + "}\n";
    return replaceFile(resultFile(folder, id), text);
}

Result<void> writeBatchPlan(const BatchPlan& plan) {
    std::error_code failed;
    fs::create_directories(fs::path(plan.folder) / "tasks", failed);
    if (failed)
        return Error{ErrorCode::ToolFailed, "cannot make the batch's folder: " + failed.message(), plan.folder, {}};
    std::string text = "{";
    std::set<std::string> written;
    for (const BatchTask& task : plan.tasks) {
        if (!written.insert(task.id).second) continue;
        text += (text.size() > 1 ? ",\n " : "") + jsonString(task.id) + ": {\"command\": " + listText(task.command) +
                ", \"minify\": " + listText(task.minify) + ", \"seconds\": " + millisecondsText(task.seconds) +
                ", \"minify_seconds\": " + millisecondsText(task.minifySeconds) + "}";
    }
    return replaceFile((fs::path(plan.folder) / "plan.json").string(), text + "}\n");
}

Result<BatchTask> plannedTask(const std::string& folder, const std::string& id) {
    const std::string path = (fs::path(folder) / "plan.json").string();
    CT_TRY(const std::string text, readFile(path));
    CT_TRY(const auto document, parseJson(text, path));
    const auto found = document->root.find(id);
    if (!found) return Error{ErrorCode::NotFound, "the batch has no task '" + id + "'", path, {}};
    BatchTask task;
    task.id = id;
    CT_TRY(task.command, listAt(*found, "command", path));
    CT_TRY(task.minify, listAt(*found, "minify", path));
    CT_TRY(const Json seconds, found->at("seconds", path));
    CT_TRY(const Json minifySeconds, found->at("minify_seconds", path));
    task.seconds = seconds.real().value_or(task.seconds);
    task.minifySeconds = minifySeconds.real().value_or(task.minifySeconds);
    return task;
}

}  // namespace cutaway
