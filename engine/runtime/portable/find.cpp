// Operators whose results' sizes follow from their data, assertions about such sizes, and other calls without results.
#include "engine/runtime/portable/find.h"

#include <cstdio>

#include "engine/support/factor_status.h"

namespace cutaway::portable {
namespace {

void nonzero(const Run& run) {
    const Strided x = run.in(0);
    const int32_t rank = run.operands[run.call->args[0].integer].rank;  // a number has no dims
    int64_t count = 0;
    forEach(x, [&](const int64_t* index, int64_t) { count += isTrue(x, offsetAt(x, index)); });
    auto* to = reinterpret_cast<int64_t*>(take(run, {count, rank}));
    forEach(x, [&](const int64_t* index, int64_t) {
        if (isTrue(x, offsetAt(x, index))) to = std::copy_n(index, rank, to);
    });
}

/// An index for each dim, as results of their own.
void nonzeroByDim(const Run& run) {
    const Strided x = run.in(0);
    int64_t count = 0;
    forEach(x, [&](const int64_t* index, int64_t) { count += isTrue(x, offsetAt(x, index)); });
    for (int32_t d = 0; d < run.call->resultCount; ++d) {
        auto* to = reinterpret_cast<int64_t*>(take(run, {count}, d));
        forEach(x, [&](const int64_t* index, int64_t) {
            if (isTrue(x, offsetAt(x, index))) *to++ = index[d];
        });
    }
}

void maskedSelect(const Run& run) {
    const Strided given = run.in(0), mask = run.in(1);
    int64_t sizes[CT_MAX_RANK];
    const int32_t rank = std::max(given.rank, mask.rank);
    for (int32_t d = 0; d < rank; ++d) {
        const auto size = [&](const Strided& tensor) {
            const int32_t own = d - (rank - tensor.rank);
            return own < 0 ? int64_t{1} : tensor.sizes[own];
        };
        sizes[d] = size(given) == 1 ? size(mask) : size(given);
    }
    const Strided from = broadcast(given, sizes, rank), where = broadcast(mask, sizes, rank);
    int64_t count = 0;
    forEach(where, [&](const int64_t* index, int64_t) { count += isTrue(where, offsetAt(where, index)); });
    char* to = take(run, {count});
    const int64_t bytes = bytesOf(from.dtype);
    forEach(where, [&](const int64_t* index, int64_t) {
        if (!isTrue(where, offsetAt(where, index))) return;
        copyElement(bytes, from.at(offsetAt(from, index)), to);
        to += bytes;
    });
}

void repeatInterleave(const Run& run) {
    const Strided repeats = run.in(0);
    const Indices times(repeats);
    int64_t count = 0;
    for (int64_t i = 0; i < repeats.sizes[0]; ++i) {
        const int64_t each = times[i * repeats.strides[0]];
        if (each < 0) throw Failure("repeats can not be negative");
        if (__builtin_add_overflow(count, each, &count)) throw Failure("the repeats sum up to more than 64 bits hold");
    }
    const CtArgument& said = run.call->args[1];
    if (said.kind == CT_INT && said.integer != count)
        throw Failure("the repeats sum up to " + std::to_string(count) + ", not to " + std::to_string(said.integer));
    char* to = take(run, {count});
    const int64_t bytes = bytesOf(repeats.dtype);
    for (int64_t i = 0; i < repeats.sizes[0]; ++i)
        for (int64_t left = times[i * repeats.strides[0]]; left > 0; --left, to += bytes)
            storeOne(repeats.dtype, to, i);
}

[[noreturn]] void failAssertion(const Run& run) {
    const CallReader reader(*run.call);
    const std::string_view said = reader.text("assert_msg");
    throw Failure(said.empty() ? "the assertion does not hold" : std::string(said));
}
void assertNumber(const Run& run) {
    if (numberOf<double>(run.call->args[0]) == 0) failAssertion(run);
}
void assertTensor(const Run& run) {
    if (!isTrue(run.in(0), 0)) failAssertion(run);
}
void checkFactors(const Run& run) {
    const CallReader reader(*run.call);
    const Strided info = run.in(0);
    const Indices statuses(info);
    int64_t at = 0;
    forEach(info, [&](const int64_t* index, int64_t) {
        if (const int64_t status = statuses[offsetAt(info, index)]; status != 0)
            throw Failure(ct::factorStatusText(reader.text("api_name"), status, reader.flag("is_matrix") ? -1 : at));
        ++at;
    });
}
void printText(const Run& run) { std::fprintf(stderr, "%s\n", std::string(CallReader(*run.call).text("s")).c_str()); }
/// min <= size <= max, and for sizes at least 0.
void constrainRange(const Run& run) {
    const auto size = numberOf<double>(run.call->args[0]);
    if (is(*run.call, "aten.sym_constrain_range_for_size.default") && size < 0) throw Failure("the size is negative");
    for (const int32_t bound : {1, 2}) {
        if (!isGiven(*run.call, bound)) continue;
        const auto promised = numberOf<double>(run.call->args[bound]);
        if (bound == 1 ? size < promised : size > promised)
            throw Failure(std::to_string(static_cast<int64_t>(size)) +
                          (bound == 1 ? " is less than the promised " : " is more than the promised ") +
                          std::to_string(numberOf<int64_t>(run.call->args[bound])));
    }
}

constexpr Function kFindFunctions[] = {
    {.op = "aten._assert_scalar.default", .run = assertNumber, .finds = true},
    {.op = "aten._assert_async.default", .run = assertTensor, .finds = true},
    {.op = "aten._assert_async.msg", .run = assertTensor, .finds = true},
    {.op = "aten._linalg_check_errors.default", .run = checkFactors, .finds = true},
    {.op = "aten._print.default", .run = printText, .finds = true},
    {.op = "aten.sym_constrain_range.default", .run = constrainRange, .finds = true},
    {.op = "aten.sym_constrain_range_for_size.default", .run = constrainRange, .finds = true},
    {.op = "aten.nonzero.default", .run = nonzero, .finds = true},
    {.op = "aten.nonzero_numpy.default", .run = nonzeroByDim, .finds = true},
    {.op = "aten.where.default", .run = nonzeroByDim, .finds = true},
    {.op = "aten.masked_select.default", .run = maskedSelect, .finds = true},
    {.op = "aten.repeat_interleave.Tensor", .run = repeatInterleave, .finds = true},
};

}  // namespace

std::span<const Function> findFunctions() { return kFindFunctions; }

}  // namespace cutaway::portable
