#include "engine/partition/integer_program.h"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "engine/support/check.h"

namespace cutaway {
namespace {

// The library's tolerances are absolute, so both sides are scaled to numbers of this size.
constexpr double kScale = 10000;

struct DeleteModel {
    void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

}  // namespace

std::vector<int> solveIntegerProgram(const std::vector<double>& worth, const std::vector<double>& weights,
                                     double capacity) {
    std::vector<int> free, chosen;
    for (size_t i = 0; i < worth.size(); ++i) {
        if (weights[i] <= 0) free.push_back(static_cast<int>(i));
        else if (weights[i] <= capacity && worth[i] > 0) chosen.push_back(static_cast<int>(i));
    }
    if (chosen.empty()) return free;
    const double most = worth[static_cast<size_t>(*std::max_element(chosen.begin(), chosen.end(), [&](int a, int b) {
        return worth[static_cast<size_t>(a)] < worth[static_cast<size_t>(b)];
    }))];

    static std::mutex oneAtATime;  // the library keeps state of its own
    const std::lock_guard lock(oneAtATime);
    const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
    Cbc_setLogLevel(model.get(), 0);
    Cbc_setParameter(model.get(), "log", "0");
    Cbc_setParameter(model.get(), "slog", "0");
    std::vector<int> columns;
    std::vector<double> row;
    for (const int item : chosen) {
        columns.push_back(static_cast<int>(columns.size()));
        row.push_back(weights[static_cast<size_t>(item)] / capacity * kScale);
        Cbc_addCol(model.get(), "", 0, 1, -worth[static_cast<size_t>(item)] / most * kScale, 1, 0, nullptr, nullptr);
    }
    Cbc_addRow(model.get(), "", static_cast<int>(columns.size()), columns.data(), row.data(), 'L', kScale);
    Cbc_solve(model.get());
    const double* solution = Cbc_getColSolution(model.get());
    CT_CHECK(Cbc_isProvenOptimal(model.get()) != 0 && solution != nullptr, "a knapsack has a best solution");
    std::vector<int> saved = std::move(free);
    for (size_t i = 0; i < chosen.size(); ++i)
        if (solution[i] > 0.5) saved.push_back(chosen[i]);
    std::sort(saved.begin(), saved.end());
    return saved;
}

}  // namespace cutaway
