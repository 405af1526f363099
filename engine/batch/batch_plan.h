#pragma once
// The folder of a batch: plan.json, what tasks are asked for; tasks/ID.json, what one came to; tasks/ID, what it left.
#include <filesystem>
#include <optional>
#include <string>

#include "cutaway/batch.h"

namespace cutaway {

std::filesystem::path batchTaskFolder(const std::string& folder, const std::string& id);
/// What a task came to; nothing if there is no such file, or one that does not read back.
std::optional<BatchResult> readBatchResult(const std::string& folder, const std::string& id);
Result<void> writeBatchResult(const std::string& folder, const std::string& id, const BatchResult& result);

Result<void> writeBatchPlan(const BatchPlan& plan);
/// Of a folder's plan, the task of that name. Errors: no plan, no such task.
Result<BatchTask> plannedTask(const std::string& folder, const std::string& id);

/// Runs the command, and the minifier where it fails, by `threads` threads. Nothing: somebody killed one of the two,
/// and it is to be run again. Errors: the folder cannot be written; a program cannot be started.
Result<std::optional<BatchResult>> tryBatchTask(const BatchTask& task, const std::string& folder, int threads,
                                                const Progress& progress);

/// Tasks that have no result, each once, the largest model first.
std::vector<const BatchTask*> openBatchTasks(const BatchPlan& plan);

Result<void> runBatchHere(const BatchPlan& plan, const std::function<void(const BatchState&)>& watch,
                          const Progress& progress);
Result<void> runBatchOnSlurm(const BatchPlan& plan, const std::function<void(const BatchState&)>& watch,
                             const Progress& progress);
/// What is there of the plan's results: `waiting` and `running` are left out.
BatchState batchState(const BatchPlan& plan);

}  // namespace cutaway
