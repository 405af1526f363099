#include "engine/minify/reduce.h"

#include <algorithm>

#include "engine/minify/edits.h"
#include "engine/minify/reducer.h"

namespace cutaway {
namespace {

struct ReducingRow {
    ReduceStrategy about;
    Result<bool> (*run)(Reducer&);
    enum class When : uint8_t {
        Again,  // until nothing changes any more
        Once,   // no other strategy gives it something to do again
        Last    // after the rounds: simplifies what is left, without making it smaller
    } when;
};
using enum ReducingRow::When;
const ReducingRow kReducingRows[] = {
    {{"near", "keeps what stands near the rewrite that is to blame"}, keepNear, Once},
    {{"end", "ends the graph at the first call with which it fails"}, cutEnd, Once},
    {{"begin", "begins the graph at the last call without which it does not fail"}, cutBegin, Once},
    {{"outputs", "returns less"}, dropOutputs, Again},
    {{"bypass", "lets readers of a call read one of its operands"}, bypassCalls, Again},
    {{"inputs", "replaces calls by inputs that have their values"}, callsToInputs, Again},
    {{"merge", "lets one input stand for two of its type"}, mergeInputs, Again},
    {{"bodies", "makes bodies of control flow smaller"}, shrinkBodies, Again},
    {{"parameters", "makes parameters and buffers plain inputs"}, plainInputs, Once},
    {{"request", "leaves out options of the compilation"}, simplifyRequest, Once},
    {{"symbols", "gives size symbols their example values"}, fixSizes, Once},
    {{"sizes", "makes dimensions smaller, through the whole graph"}, shrinkSizes, Again},
    {{"dtypes", "makes every floating dtype f32"}, plainDtypes, Once},
    {{"literals", "gives optional arguments their defaults"}, plainLiterals, Again},
    {{"constants", "replaces inputs by constants of their types"}, constantInputs, Last},
    {{"passes", "leaves out passes without which it fails, too"}, leaveOutPasses, Last},
};
constexpr int kMostRounds = 5;

}  // namespace

std::vector<ReduceStrategy> reduceStrategies() {
    std::vector<ReduceStrategy> all;
    for (const ReducingRow& row : kReducingRows) all.push_back(row.about);
    return all;
}

Result<bool> Reducer::take(const Candidate& candidate, const std::string& how) {
    CT_TRY(const bool bad, m_trials.fails(candidate));
    if (bad) CT_TRY_VOID(accept(candidate, how));
    return bad;
}

Result<void> Reducer::accept(Candidate candidate, const std::string& how) {
    m_best = std::move(candidate);
    return m_trials.accepted(m_best, how);
}

Result<bool> Reducer::sweep(size_t count, const Trials::Make& make, const std::string& how) {
    bool any = false;
    for (size_t next = 0; next < count;) {
        CT_TRY(std::optional<Trials::Hit> hit,
               m_trials.firstFailing(count - next, [&](size_t i) { return make(next + i); }));
        if (!hit) break;
        next += hit->number + 1;
        CT_TRY_VOID(accept(std::move(hit->candidate), how));
        any = true;
    }
    return any;
}

Result<Candidate> reduce(const Candidate& start, Trials& trials, const ReduceOptions& options) {
    Reducer reducer(start, trials);
    CT_TRY(const bool bad, trials.fails(start));
    if (!bad)
        return Error{ErrorCode::NotFound, "the graph does not fail", {}, {"choose another check, or other inputs"}};
    const auto isLeftOut = [&](const ReducingRow& row) {
        return std::find(options.without.begin(), options.without.end(), row.about.name) != options.without.end();
    };
    bool again = true;
    for (int round = 0; again && round < kMostRounds; ++round) {
        again = false;
        for (const ReducingRow& row : kReducingRows) {
            if (row.when == Last || (round > 0 && row.when == Once) || isLeftOut(row)) continue;
            CT_TRY(const bool smaller, row.run(reducer));
            again = again || (smaller && row.when == Again);
        }
    }
    for (const ReducingRow& row : kReducingRows)
        if (row.when == Last && !isLeftOut(row)) CT_TRY_VOID(row.run(reducer));
    return reducer.best();
}

}  // namespace cutaway
