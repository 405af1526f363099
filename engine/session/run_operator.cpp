// What the cache of operators holds: lists, runs, removal.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cutaway/guarded.h"
#include "engine/session/arguments.h"
#include "engine/session/execution.h"
#include "engine/session/operator_call.h"
#include "engine/session/operator_entry.h"
#include "engine/session/output_report.h"
#include "engine/session/run_inputs.h"
#include "engine/support/process.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr const char* kForeign = "its library is PyTorch's, and runs there only";

OperatorEntry entryOf(const OperatorPlace& place, const OperatorRecord& record,
                      const std::vector<IndexedEntry>& index) {
    OperatorEntry entry;
    entry.op = place.space + "::" + place.op;
    entry.device = place.device;
    for (const InputRecord& input : record.inputs) entry.inputs.push_back(input.text());
    entry.library = (fs::path(place.folder()) / record.library).lexically_normal().string();
    entry.cache = place.root;
    std::error_code none;
    const std::string key = keyOf(record);
    const auto seal =
        key.empty() ? Result<Seal>(Error{ErrorCode::NotFound, kForeign, "", {}}) : readSeal(place.library(key));
    if (seal) {
        entry.key = key;
        entry.bytes = seal->bytes();
        const auto found =
            std::find_if(index.begin(), index.end(), [&](const IndexedEntry& each) { return each.name == key; });
        if (found != index.end()) {
            entry.hits = found->hits;
            entry.made = found->made;
            entry.used = found->used;
        }
    } else {
        const auto bytes = fs::file_size(entry.library, none);
        entry.bytes = none ? 0 : static_cast<int64_t>(bytes);
        entry.problem = seal.error().code == ErrorCode::NotFound ? kForeign : seal.error().message;
    }
    if (!record.problem.empty()) entry.problem = record.problem;
    return entry;
}

/// The median and the best of what main.c printed.
void readTimes(const std::string& printed, RunReport& run) {
    const size_t at = printed.rfind("median ");
    if (at != std::string::npos)
        static_cast<void>(std::sscanf(printed.c_str() + at, "median %lf ms, best %lf ms", &run.medianMilliseconds,
                                      &run.minMilliseconds));
}

}  // namespace

Result<OperatorList> operatorEntries(const std::string& cache) {
    return guarded([&]() -> Result<OperatorList> {
        OperatorList list;
        const std::string root = operatorCacheFolder(cache);
        const std::vector<OperatorPlace> places = root.empty() ? std::vector<OperatorPlace>() : operatorPlaces(root);
        if (places.empty()) return list;
        std::vector<IndexedEntry> index;
        if (const auto counted = operatorIndex(root, list.remarks))
            if (auto all = counted->all()) index = std::move(*all);
        for (const OperatorPlace& place : places)
            for (const OperatorRecord& record : readOperatorRecords(place, list.remarks))
                list.entries.push_back(entryOf(place, record, index));
        return list;
    });
}

Result<RunReport> runOperator(const OperatorEntry& entry, const OperatorRunOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<RunReport> {
        if (!entry.problem.empty()) return unsupported(entry.problem, entry.library);
        const std::string folder = placeOf(entry).library(entry.key);
        CT_TRY(Seal seal, openSealed(folder));
        CT_TRY(const OperatorName op, operatorNamed(entry.op));
        CT_TRY(const TempDir space, TempDir::create("operator"));
        RunReport run;
        std::string inputs = folder + "/" + kOperatorInputs;
        run.inputsFrom = "those that it was compiled with";
        if (!options.inputsFile.empty()) {
            CT_TRY(const NamedTensors given, operatorInputs(*op.known, options.inputsFile));
            inputs = space.file("inputs.safetensors");
            CT_TRY_VOID(writeSafeTensors(inputs, {given, {}}));
            run.inputsFrom = options.inputsFile;
        }
        const std::string results = space.file("results.safetensors");
        ProcessOptions process;
        process.argv = {folder + "/" + seal.facts["name"] + "_main",
                        "--weights",
                        folder + "/weights.safetensors",
                        "--inputs",
                        inputs,
                        "--outputs",
                        results,
                        "--repeat",
                        std::to_string(std::max(1, options.repeat))};
        process.wallSeconds = options.timeoutSeconds;
        CT_TRY(const ProcessEnd end, runProcess(process, {}, progress));
        if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "cancelled", "", {}};
        if (!end.ok()) {
            std::string said = end.errors.substr(0, end.errors.find('\n'));
            return Error{ErrorCode::ToolFailed,
                         "the operator's program " + end.text() + (said.empty() ? "" : ": " + said),
                         entry.library,
                         {}};
        }
        run.repeats = options.repeat > 1 ? options.repeat : 0;
        readTimes(end.output, run);
        CT_TRY(SafeTensors written, readSafeTensors(results));

        Session session;
        CT_TRY_VOID(session.open(folder + "/" + kOperatorGraph, progress));
        const Session::State& state = session.state();
        std::vector<Tensor> expected;
        if (options.compare) {
            CT_TRY(const CalledGraph called, calledFor(state.input, state, inputs));
            CT_TRY(const Execution reference, runInterpreted(*called.graph, called.user, 1, progress));
            expected = reference.outputs;
            run.compared = true;
            run.expectedFrom = "the interpreter";
        }
        const std::vector<Argument> returned = state.input->graph().outputs();
        for (size_t i = 0; i < returned.size() && i < written.tensors.size(); ++i) {
            CT_TRY_VOID(written.tensors[i].second.storage()->load());
            run.outputs.push_back(reportOf(outputName(*state.input, i), returned[i], written.tensors[i].second,
                                           i < expected.size() && expected[i].defined() ? &expected[i] : nullptr));
            run.matches &= !run.outputs.back().compared || run.outputs.back().within;
        }
        return run;
    });
}

Result<void> removeOperator(const OperatorEntry& entry) {
    return guarded([&]() -> Result<void> {
        const OperatorPlace place = placeOf(entry);
        std::vector<std::string> remarks;
        CT_TRY_VOID(changeOperatorRecords(
            place,
            [&](std::vector<OperatorRecord>& records) {
                return std::erase_if(records, [&](const OperatorRecord& record) {
                           return (fs::path(place.folder()) / record.library).lexically_normal() == entry.library;
                       }) > 0;
            },
            remarks));
        if (entry.key.empty()) return {};
        std::error_code failed;
        fs::remove_all(place.library(entry.key), failed);
        if (failed) return Error{ErrorCode::ToolFailed, failed.message(), place.library(entry.key), {}};
        if (auto index = operatorIndex(place.root, remarks)) CT_TRY_VOID(index->forget(entry.key));
        return {};
    });
}

}  // namespace cutaway
