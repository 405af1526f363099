#pragma once
// Kernels written by hand, memory for them, and what a plan's nests are compared with.
#include <QString>
#include <functional>
#include <random>

#include "engine/loops/interpret.h"
#include "engine/schedule/program.h"

namespace cutaway::testing {

inline Expr num(int64_t value) { return Expr::integer(value); }

/// b0[rows, columns] = softmax of b1 along the columns.
Kernel softmax(int64_t rows, int64_t columns);
/// b0[columns, rows] = b1[rows, columns], turned.
Kernel transpose(int64_t rows, int64_t columns);
/// b0[rows] = where the largest element of a row is, b2[rows] = the sum of it.
Kernel largest(int64_t rows, int64_t columns);
/// b0[bag, d] = the sum of rows of a table [items, dims] that stand from offsets[bag] to offsets[bag + 1]: a length
/// that follows from data.
Kernel bags(int64_t count, int64_t dims);
/// The largest of each row and its neighbours, of [rows, columns]; what is outside counts as minus infinity.
Kernel windows(int64_t rows, int64_t columns);
/// The largest of three neighbours within a row, of each `step`-th of [rows, columns].
Kernel pooled(int64_t rows, int64_t columns, int64_t step);
/// b0[rows, columns] = of each row of b1 the elements at an index that follows from the column: "roll", "reflect",
/// "enlarge" (each twice, by way of floats), "squares" (in no pieces).
Kernel picked(int64_t rows, int64_t columns, const std::string& how);
/// b0[n + m] = b1[n] beside b2[m] with a border of `pad` zeros: conditions that change within the vector loop.
Kernel beside(int64_t n, int64_t m, int64_t pad);
/// b0[rows, columns] = b1 or its sum with a row b2, whichever is larger, in integers of the given dtype.
Kernel integers(int64_t rows, int64_t columns, DType dtype);
/// b0[count] = gelu of b1, element by element.
Kernel gelu(int64_t count);
/// b0[columns] = sums of b1[rows, columns] over the rows.
Kernel columnSums(int64_t rows, int64_t columns);
/// The same of columns between two of zeros on each side.
Kernel bordered(int64_t rows, int64_t columns);
/// b0[rows, columns] = b1 plus, to each element of a row, the sum of the row of b2[rows, inner].
Kernel rowSumsAdded(int64_t rows, int64_t columns, int64_t inner);
/// Rows b1[count, dims] added to those of b0[items, dims] that indices name, which follow from b2 and the row.
Kernel scatterAdded(int64_t count, int64_t items, int64_t dims);
/// b0[count] = elements of b1 at the indices b2.
Kernel gather(int64_t count);

/// A kernel to try, and how many elements each of its buffers has.
struct KernelSample {
    QString name;
    Kernel kernel;
    size_t elements;
};

/// Those above in many sizes.
std::vector<KernelSample> kernelSamples();

/// Memory for every buffer: numbers from the seed where a kernel reads, -7 where it writes.
struct Memory {
    std::vector<std::vector<char>> bytes;
    std::vector<void*> pointers;
    Memory(const Kernel& kernel, size_t elements, uint32_t seed);
};

/// A plan made by chance; most are legal.
LoopPlan randomPlan(const Kernel& kernel, std::mt19937& random, const TargetInfo& target = kCpuTarget);

/// What `wrongOf` says of the first kernel of the ops' samples of which it says something, with the sample's name;
/// `count`: how many kernels it was asked of.
QString firstWrong(const std::function<QString(const PlannedKernel&)>& wrongOf, int& count);

/// Where the plan's nests, in pieces of `chunk` parts, give something else than the kernel means; nothing if they
/// agree. Other plans sum in other orders, so floats may differ by a few units in the last place.
QString difference(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target, size_t elements, uint32_t seed,
                   int64_t chunk);
/// The same of the nests as a GPU runs them (interpretLanes).
QString differenceOfLanes(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target, size_t elements,
                          uint32_t seed);

}  // namespace cutaway::testing
