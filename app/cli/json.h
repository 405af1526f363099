#pragma once
// Reports as JSON. Steps and rewrites have numbers from 1 on, as everywhere else.
#include <nlohmann/json.hpp>

#include "cutaway/session.h"

namespace cutaway::cli {

using Json = nlohmann::ordered_json;

Json toJson(const ModelInfo& model);
Json toJson(const StepInfo& step);
Json toJson(const RewriteInfo& rewrite);
Json toJson(const StageInfo& stage);
Json toJson(const RunReport& report);
Json toJson(const PartitionChoice& choice);
/// Adds to a report what a run of compiled code cost beside its own time, and to its shape.
void addCost(Json& row, const RunCost& cost);
void addCostShape(Json& shape);
/// Adds what a forward saves to the row of the stage that made it.
void addSaved(Json& row, const PartitionChoice& choice);
/// A number, or one of the strings NaN, Infinity and -Infinity.
Json realJson(double value);
std::string dump(const Json& json);

// Their shapes, for the manual (json_shape.h).
Json shapeOfModel();
Json shapeOfStep();
Json shapeOfRewrite();
Json shapeOfStage();
Json shapeOfRun();
Json shapeOfPartition();

}  // namespace cutaway::cli
