#include <algorithm>
#include <filesystem>

#include "cutaway/export.h"
#include "cutaway/guarded.h"
#include "cutaway/program.h"
#include "engine/cache/build_id.h"
#include "engine/exporting/export_folder.h"
#include "engine/passes/defined_operators.h"
#include "engine/runtime/cpu/compiler.h"
#include "engine/session/operator_call.h"
#include "engine/session/operator_entry.h"
#include "engine/support/file_lock.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace fs = std::filesystem;

std::string operatorCacheFolder(const std::string& given) {
    if (!given.empty()) return fs::absolute(given).lexically_normal().string();
    const std::string store = ValueStore::defaultPath();
    return store.empty() ? std::string() : fs::path(store).parent_path().string();
}

std::optional<EntryIndex> operatorIndex(const std::string& root, std::vector<std::string>& remarks) {
    auto store = ValueStore::open(root + "/store.sqlite");
    if (!store) {
        remarks.push_back("sizes and uses of entries are not counted: " + store.error().text());
        return std::nullopt;
    }
    if (!(*store)->remark().empty()) remarks.push_back((*store)->remark());
    return EntryIndex(std::move(*store), "operator");
}

std::string keyOf(const OperatorRecord& record) {
    const fs::path path(record.library);
    const fs::path folder = path.parent_path();
    return folder.parent_path() == "lib" && path.is_relative() ? folder.filename().string() : std::string();
}

OperatorPlace placeOf(const OperatorEntry& entry) {
    OperatorPlace place;
    place.root = entry.cache;
    place.device = entry.device;
    const size_t colons = entry.op.find("::");
    place.space = entry.op.substr(0, colons);
    place.op = entry.op.substr(colons + 2);
    return place;
}

namespace {

constexpr double kBuildSeconds = 600;  // that another process may take to build what this one wants, too

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
    return all;
}

/// All that decides what a library does, and where it runs.
Result<std::string> keyFor(const OperatorCall& call, const OperatorPlace& place) {
    CT_TRY(const std::string compiler, compilerIdentity({}));
    Hasher hash;
    for (const std::string& text :
         {std::string("operator 1"), place.space, place.op, place.device, std::string(buildId()), compiler,
          operatorRecordsText({OperatorRecord{call.record, "", "", ""}}), definitionsText(*call.name.known)}) {
        hash.add(static_cast<uint64_t>(text.size()));
        hash.add(std::string_view(text));
    }
    return hash.finish().hex();
}

class Compiler {
  public:
    Compiler(const OperatorOptions& options, OperatorCall call, OperatorPlace place, std::string key,
             const Progress& progress)
        : m_options(options),
          m_call(std::move(call)),
          m_place(std::move(place)),
          m_key(std::move(key)),
          m_progress(progress) {}

    Result<CompiledOperator> run() {
        if (find(true)) return std::move(m_made);
        std::optional<FileLock> building;
        auto ready =
            m_place.root.empty() ? Error{ErrorCode::NotFound, "there is no home for it", "", {}} : makeFolders(m_place);
        if (ready) {
            std::string problem;
            m_progress.say(0, "waiting for another process that compiles the same");
            building = FileLock::take(m_place.lock(m_key), kBuildSeconds, &problem, m_progress);
            if (m_progress.cancelled()) return Error{ErrorCode::Cancelled, "cancelled", "", {}};
            if (!problem.empty()) ready = Error{ErrorCode::ToolFailed, problem, "", {}};
            else if (find(false)) return std::move(m_made);
        }
        CT_TRY(const TempDir made, TempDir::create("operator"));
        if (auto compiled = compile(made.path()); !compiled) {
            Error error = std::move(compiled).error();
            if (error.code != ErrorCode::Cancelled)
                error.message = "Failed to compile " + m_place.op + ": " + error.message;
            return error;
        }
        if (ready) ready = keep(made.path());
        if (!ready) {
            m_made.remarks.push_back("the cache cannot be written, and the library is kept until the program ends: " +
                                     ready.error().text());
            CT_TRY(m_place.root, temporaryFolder());
            CT_TRY_VOID(makeFolders(m_place));
            CT_TRY_VOID(keep(made.path()));
        }
        return std::move(m_made);
    }

  private:
    std::string name() const {
        std::string text = m_place.space + "_" + m_place.op;
        std::replace(text.begin(), text.end(), '.', '_');
        return exportNameOf(text);
    }
    std::string library() const { return "lib/" + m_key + "/lib" + name() + ".so"; }

    void describe(const Seal& seal) {
        OperatorEntry& entry = m_made.entry;
        entry.op = m_call.name.text();
        entry.device = m_place.device;
        for (const InputRecord& input : m_call.record) entry.inputs.push_back(input.text());
        entry.library = m_place.folder() + "/" + library();
        entry.cache = m_place.root;
        entry.key = m_key;
        entry.bytes = seal.bytes();
    }
    std::string about() const { return m_made.entry.op + " " + joined(m_made.entry.inputs); }

    /// The entry as it is in the cache. `say`: what is wrong with it.
    bool find(bool say) {
        std::error_code none;
        if (m_place.root.empty() || !fs::exists(m_place.library(m_key), none)) return false;
        auto seal = isPrivateFolder(m_place.folder() + "/lib")
                        ? openSealed(m_place.library(m_key))
                        : Result<Seal>(invalidInput("somebody else may write to the folder of the libraries"));
        if (!seal) {
            if (say) m_made.remarks.push_back("an entry is compiled anew: " + seal.error().text());
            return false;
        }
        m_made.found = true;
        describe(*seal);
        note();
        if (auto index = operatorIndex(m_place.root, m_made.remarks))
            if (const auto counted = index->hit(m_key, m_made.entry.bytes, about()); !counted)
                m_made.remarks.push_back("the use is not counted: " + counted.error().text());
        return true;
    }

    /// Exports the call's graph, and of the folder keeps what the entry needs.
    Result<void> compile(const fs::path& folder) {
        const std::string graph = (folder / kOperatorGraph).string(), given = (folder / "given.safetensors").string();
        CT_TRY_VOID(writeFile(graph, m_call.graph));
        if (!m_call.inputs.empty()) CT_TRY_VOID(writeSafeTensors(given, {m_call.inputs, {}}));
        Session session;
        CT_TRY_VOID(session.open(graph, m_progress));
        CompileRequest request;
        request.target = m_options.device;
        CT_TRY(const RunId run, session.compile(request, {.cacheFile = "off"}, m_progress));
        ExportOptions options;
        options.folder = (folder / "exported").string();
        options.name = name();
        if (!m_call.inputs.empty()) options.inputsFile = given;
        options.timeoutSeconds = m_options.timeoutSeconds;
        CT_TRY(const ExportReport report, exportProgram(session, run, options, m_progress));
        m_made.compileSeconds = report.compileSeconds;
        const fs::path exported(options.folder);
        m_progress.say(0.9, "compiling main.c");
        CT_TRY(const CompiledLibrary main,
               compileMain((exported / "main.c").string(), name(), (exported / (name() + "_main")).string(),
                           {{}, m_options.timeoutSeconds}, m_progress));
        m_made.compileSeconds += main.seconds;
        // The sources that every library has in common say nothing of this one.
        std::error_code failed;
        fs::remove_all(exported / "src" / "engine", failed);
        for (const char* file : {"CMakeLists.txt", "manifest.json", "example.cpp", "example.py"})
            fs::remove(exported / file, failed);
        fs::rename(graph, exported / kOperatorGraph, failed);
        if (failed) return Error{ErrorCode::ToolFailed, failed.message(), graph, {}};
        return {};
    }

    /// Puts a copy of what was compiled into the cache, and notes it.
    Result<void> keep(const fs::path& folder) {
        removeUnfinished();
        const std::string making = m_place.folder() + "/lib/.making-" + m_key;
        std::error_code failed;
        fs::remove_all(making, failed);
        fs::copy(folder / "exported", making, fs::copy_options::recursive, failed);
        auto sealed = failed ? Result<void>(Error{ErrorCode::ToolFailed, failed.message(), making, {}})
                             : sealFolder(making, {{"op", m_call.name.text()},
                                                   {"device", m_place.device},
                                                   {"key", m_key},
                                                   {"name", name()},
                                                   {"engine", buildId()}});
        if (sealed) sealed = putFolder(making, m_place.library(m_key));
        if (!sealed) {
            fs::remove_all(making, failed);
            return sealed;
        }
        CT_TRY(const Seal seal, readSeal(m_place.library(m_key)));
        describe(seal);
        note();
        if (auto index = operatorIndex(m_place.root, m_made.remarks))
            if (const auto added = index->add(m_key, m_made.entry.bytes, about()); !added)
                m_made.remarks.push_back("the entry is not counted: " + added.error().text());
        return {};
    }

    /// What programs that were killed have left; whoever makes one now holds its lock.
    void removeUnfinished() const {
        std::error_code none;
        std::vector<fs::path> left;
        for (const auto& entry : fs::directory_iterator(m_place.folder() + "/lib", none))
            if (entry.path().filename().string().starts_with(".")) left.push_back(entry.path());
        for (const fs::path& path : left) {
            const std::string unfinished = path.filename().string();
            if (const auto lock = FileLock::take(m_place.lock(unfinished.substr(unfinished.find('-') + 1)), 0))
                fs::remove_all(path, none);
        }
    }

    /// One record of these inputs. An entry of PyTorch's stays, whose loader knows nothing of our libraries.
    void note() {
        const auto isOurs = [&](const OperatorRecord& record) {
            const std::string key = keyOf(record);
            return !key.empty() && readSeal(m_place.library(key)).has_value();
        };
        std::string replaced;
        bool foreign = false;
        const auto change = [&](std::vector<OperatorRecord>& records) {
            for (const OperatorRecord& record : records) {
                if (!record.problem.empty() || !sameInputs(record.inputs, m_call.record)) continue;
                if (record.library == library()) return false;
                foreign |= !isOurs(record);
            }
            if (foreign) return false;
            std::erase_if(records, [&](const OperatorRecord& record) {
                const bool same = record.problem.empty() && sameInputs(record.inputs, m_call.record);
                if (same) replaced = keyOf(record);
                return same;
            });
            records.push_back({m_call.record, library(), {}, {}});
            return true;
        };
        if (m_made.found) {  // mostly there, and then nobody waits
            std::vector<std::string> said;
            std::vector<OperatorRecord> records = readOperatorRecords(m_place, said);
            if (!change(records) && !foreign) return;
            foreign = false;
        }
        const auto written = changeOperatorRecords(m_place, change, m_made.remarks, m_progress);
        if (!written) m_made.remarks.push_back("the entry is not listed: " + written.error().text());
        if (foreign)
            m_made.remarks.push_back(m_place.file() +
                                     ": PyTorch has an entry of these inputs, which stays; this one is "
                                     "not listed there");
        if (written && !replaced.empty()) {
            std::error_code none;
            fs::remove_all(m_place.library(replaced), none);
            if (auto index = operatorIndex(m_place.root, m_made.remarks)) static_cast<void>(index->forget(replaced));
        }
    }

    const OperatorOptions& m_options;
    OperatorCall m_call;
    OperatorPlace m_place;
    std::string m_key;
    const Progress& m_progress;
    CompiledOperator m_made;
};

}  // namespace

Result<CompiledOperator> compileOperator(const OperatorOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<CompiledOperator> {
        CT_TRY(OperatorCall call, operatorCall(options));
        OperatorPlace place{operatorCacheFolder(options.cache), call.name.space,
                            options.device == Target::Cuda ? "cuda" : "cpu", call.name.op};
        CT_TRY(std::string key, keyFor(call, place));
        return Compiler(options, std::move(call), std::move(place), std::move(key), progress).run();
    });
}

}  // namespace cutaway
