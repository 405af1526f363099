#include "engine/numerics/measure.h"

#include <cmath>

#include "engine/numerics/element_reader.h"
#include "engine/numerics/same.h"
#include "engine/numerics/tally.h"
#include "engine/support/number_text.h"

namespace cutaway {

bool diverges(NodeVerdict verdict) {
    return verdict == NodeVerdict::Wrong || verdict == NodeVerdict::NonFinite || verdict == NodeVerdict::WrongType ||
           verdict == NodeVerdict::Failed;
}

const char* wordOf(NodeVerdict verdict) {
    switch (verdict) {
        case NodeVerdict::Equal: return "equal";
        case NodeVerdict::Close: return "close";
        case NodeVerdict::Wrong: return "wrong";
        case NodeVerdict::NonFinite: return "not finite";
        case NodeVerdict::WrongType: return "wrong type";
        case NodeVerdict::Failed: return "fails";
        case NodeVerdict::Unmatched: return "unmatched";
    }
    return "";
}

namespace {

constexpr double kFactor = 4;  // of Judge::F64Error
/// Errors up to so many roundings of an element of the usual size do not count against a value.
constexpr double kRoundings = 4;

/// Half the distance between 1 and the next number; 0 for what is not a float.
double unitRoundoff(DType dtype) {
    switch (dtype) {
        case DType::F64:
        case DType::C128: return 0x1p-53;
        case DType::F32:
        case DType::C64: return 0x1p-24;
        case DType::F16:
        case DType::C32: return 0x1p-11;
        case DType::BF16: return 0x1p-8;
        case DType::F8E4M3FN:
        case DType::F8E4M3FNUZ: return 0x1p-4;
        case DType::F8E5M2:
        case DType::F8E5M2FNUZ: return 0x1p-3;
        default: return isFloating(dtype) ? 0.25 : 0;
    }
}

std::vector<int64_t> indexOf(int64_t position, const Dims& sizes) {
    std::vector<int64_t> at(sizes.size());
    for (size_t dim = sizes.size(); dim-- > 0; position /= sizes[dim]) at[dim] = position % sizes[dim];
    return at;
}

void noteErrors(const Tally& tally, const Tensor& value, NodeNumbers& row) {
    row.newNonFinite = tally.newNonFinite;
    row.different = tally.different;
    row.maxAbsolute = tally.maxAbsolute;
    row.maxRelative = tally.maxRelative;
    row.worstValue = tally.worstValue;
    row.worstReference = tally.worstReference;
    row.maxUlp = hasOrder(value.dtype()) ? static_cast<double>(tally.maxUlp) : -1;
    if (tally.left > 0 || tally.right > 0)
        row.cosine =
            tally.left > 0 && tally.right > 0 ? tally.product / std::sqrt(tally.left) / std::sqrt(tally.right) : 0;
    if (tally.worst >= 0) row.worst = indexOf(tally.worst / ElementReader::width(value.dtype()), value.sizes());
}

std::string worstText(const NodeNumbers& row) {
    std::string place;
    for (const int64_t at : row.worst) place += (place.empty() ? "" : ", ") + std::to_string(at);
    return (place.empty() ? std::string("it is ") : "element [" + place + "] is ") + shortNumber(row.worstValue) +
           " instead of " + shortNumber(row.worstReference);
}

/// Integers and bools do not round: any difference is wrong, but where the reference itself differs from the f64 run.
void judgeWhole(const Tensor& value, const Tensor& reference, const Tensor& wide, NodeNumbers& row) {
    int64_t wrong = row.different;
    if (wide.defined() && wrong > 0) {
        wrong = 0;
        forEachPiece(
            [&](int64_t, int64_t count, const double* exact, const double* x, const double* y) {
                for (int64_t i = 0; i < count; ++i) wrong += x[i] != y[i] && y[i] == exact[i];
            },
            wide, value, reference);
    }
    if (wrong == 0) return;
    row.verdict = NodeVerdict::Wrong;
    row.why = std::to_string(wrong) + " of " + std::to_string(row.elements) + " differ: " + worstText(row);
}

void judgeOwn(DType dtype, const Tally& found, double factor, NodeNumbers& row) {
    if (found.elements == 0) return;
    const auto mean = [&](double squares) { return std::sqrt(squares / static_cast<double>(found.elements)); };
    row.rmse = mean(found.value.squares);
    row.referenceRmse = mean(found.reference.squares);
    row.maxFrom64 = found.value.most;
    row.referenceMaxFrom64 = found.reference.most;
    const double unit = kRoundings * unitRoundoff(dtype);
    const bool apart = row.rmse > factor * row.referenceRmse + unit * mean(found.magnitudes);
    // A single wrong element hardly moves the mean, but is the largest error.
    const bool one = row.maxFrom64 > factor * row.referenceMaxFrom64 + unit * found.largest;
    if (!apart && !one) return;
    row.verdict = NodeVerdict::Wrong;
    const double mine = apart ? row.rmse : row.maxFrom64, theirs = apart ? row.referenceRmse : row.referenceMaxFrom64;
    row.why = (apart ? "its distance to the f64 run is " : "its largest distance to the f64 run is ") +
              shortNumber(mine) + ", the reference's is " + shortNumber(theirs) + "; " + worstText(row);
}

std::string problemOf(const TensorType& type, const Tensor& value) {
    if (!value.defined()) return "it is None instead of " + type.text();
    const auto is = [&] {
        TensorType found = TensorType::contiguous(value.dtype(), toSymDims(value.sizes()));
        found.strides = toSymDims(value.strides());
        return "it is " + found.text() + ", the graph says " + type.text();
    };
    if (value.dtype() != type.dtype || value.sizes().size() != type.sizes.size()) return is();
    for (size_t i = 0; i < type.sizes.size(); ++i)
        if (type.sizes[i].isInt() && type.sizes[i].value() != value.sizes()[i]) return is();
    if (value.numel() == 0) return {};
    for (size_t i = 0; i < type.strides.size(); ++i)
        if (value.sizes()[i] > 1 && type.strides[i].isInt() && type.strides[i].value() != value.strides()[i])
            return is();
    return {};
}

}  // namespace

void measure(const Tensor& value, const Tensor& reference, const Tensor& wide, const JudgeOptions& options,
             NodeNumbers& row) {
    row.elements = value.numel();
    const bool real = isFloating(value.dtype()) || isComplex(value.dtype());
    if (!real && !reference.defined()) return;
    const bool distances = real && options.judge == Judge::F64Error && reference.defined();
    const Tally tally = tallyOf(value, reference, !distances ? Tensor() : wide.defined() ? wide : reference);
    row.nans = tally.nans;
    row.infinities = tally.infinities;
    if (!reference.defined()) return;
    noteErrors(tally, value, row);
    row.verdict = row.different == 0 && value.dtype() == reference.dtype() ? NodeVerdict::Equal : NodeVerdict::Close;
    if (row.newNonFinite > 0 && options.judge != Judge::Plugin) {
        row.verdict = NodeVerdict::NonFinite;
        row.why = std::to_string(row.newNonFinite) + (row.newNonFinite == 1 ? " element is" : " elements are") +
                  " not finite, and finite in the reference";
        return;
    }
    switch (options.judge) {
        case Judge::F64Error:
            if (!real) return judgeWhole(value, reference, wide, row);
            return judgeOwn(value.dtype(), tally, options.tolerance.value_or(kFactor), row);
        case Judge::Strict:
            if (row.verdict == NodeVerdict::Equal) return;
            row.verdict = NodeVerdict::Wrong;
            row.why = row.different == 0 ? "it has another dtype than the reference"
                                         : std::to_string(row.different) + " of " + std::to_string(row.elements) +
                                               " elements differ: " + worstText(row);
            return;
        case Judge::Same: {
            SameAnswer answer = same(reference, value, real ? wide : Tensor(), options);
            if (answer.same) return;
            row.verdict = NodeVerdict::Wrong;
            row.why = answer.why + (row.worst.empty() ? "" : "; " + worstText(row));
            return;
        }
        case Judge::Plugin: return;
    }
}

Result<void> measureAndAsk(const Tensor& value, const Tensor& reference, const Tensor& wide,
                           const JudgeOptions& options, const AskJudge& ask, NodeNumbers& row) {
    measure(value, reference, wide, options, row);
    if (options.judge != Judge::Plugin || !reference.defined()) return {};
    CT_TRY(row.why, ask(value, reference));
    if (!row.why.empty()) row.verdict = NodeVerdict::Wrong;
    return {};
}

std::string typeProblem(const ValueType& type, const std::vector<Tensor>& values) {
    if (const TensorType* tensor = type.tensor())
        return values.size() == 1 ? problemOf(*tensor, values[0])
                                  : "it is " + std::to_string(values.size()) + " values";
    const TupleType* items = type.tuple();
    if (items == nullptr) return {};
    if (items->size() != values.size())
        return "it is " + std::to_string(values.size()) + " values, the graph says " + std::to_string(items->size());
    for (size_t i = 0; i < values.size(); ++i)
        if (const TensorType* item = (*items)[i].tensor(); item && values[i].defined())
            if (std::string found = problemOf(*item, values[i]); !found.empty())
                return "value " + std::to_string(i) + ": " + found;
    return {};
}

}  // namespace cutaway
