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
Json toJson(const KernelInfo& kernel);
Json toJson(const BuildInfo& build);
std::string dump(const Json& json);

}  // namespace cutaway::cli
