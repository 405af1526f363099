#pragma once
// What a batch's file says, with the lines at which it says it. Nothing of it has been looked for on the disk.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

/// A value, and the place for an error: "nightly.toml:12".
template <class T>
struct Located {
    T value{};
    std::string where;
};

struct BatchModels {
    Located<std::string> path;                           // a pattern, as a shell's
    std::optional<Located<std::string>> inputs, expect;  // beside the model; {stem} is its name without the ending
    std::optional<Located<std::string>> gradients;       // what a request for training is compared with
    std::string graph;
    std::vector<std::pair<std::string, int64_t>> sizes;
};
struct BatchRequest {
    std::string name;
    Located<std::string> options;     // as a shell takes them
    std::vector<std::string> checks;  // empty: those of the file
    std::string backend;              // empty: that of the file
};
struct BatchText {
    std::string name, folder, cache, backend = "reference";
    std::vector<std::string> checks, slurm;
    std::vector<BatchModels> models;
    std::vector<BatchRequest> requests;
    double seconds = 600;
    int jobs = 0, retries = 2;
    bool minify = false;
    double minifySeconds = 600, trialSeconds = 60;
    int64_t trials = 0;  // 0: as many as it takes
};

/// `file` stands in errors, which name the line.
Result<BatchText> parseBatch(std::string_view text, const std::string& file);

}  // namespace cutaway
