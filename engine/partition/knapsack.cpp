#include "engine/partition/knapsack.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "engine/partition/integer_program.h"

namespace cutaway {
namespace {

constexpr double kQuanta = 10000;  // memory is counted in this many parts of the whole

/// Half to even, as Python rounds.
int64_t quantized(double share) {
    return static_cast<int64_t>(std::clamp(std::nearbyint(share * kQuanta), -0x1p60, 0x1p60));
}

/// By runtime saved per byte, as long as it fits.
class Greedy : public Knapsack {
  public:
    explicit Greedy(KnapsackItems items) : m_items(std::move(items)), m_order(m_items.size()) {
        std::iota(m_order.begin(), m_order.end(), 0);
        const auto rate = [&](int i) {
            return m_items.runtime[static_cast<size_t>(i)] / m_items.memory[static_cast<size_t>(i)];
        };
        std::stable_sort(m_order.begin(), m_order.end(), [&](int a, int b) { return rate(a) > rate(b); });
    }
    std::vector<int> solve(double capacity) const override {
        std::vector<int> saved;
        double used = 0;
        for (const int item : m_order) {
            const double memory = m_items.memory[static_cast<size_t>(item)];
            if (!(used + memory <= capacity)) continue;
            used += memory;
            saved.push_back(item);
        }
        std::sort(saved.begin(), saved.end());
        return saved;
    }

  private:
    KnapsackItems m_items;
    std::vector<int> m_order;
};

/// The table over items and capacities. Its columns do not depend on the capacity asked for, so it is made once, and
/// only one bit of each element is kept: whether the item makes this capacity worth more.
class DynamicProgram : public Knapsack {
  public:
    explicit DynamicProgram(const KnapsackItems& items)
        : m_weights(items.size()), m_takes(items.size(), std::vector<bool>(kColumns)) {
        std::vector<float> row(kColumns), next(kColumns);
        for (size_t i = 0; i < items.size(); ++i) {
            const int64_t weight = m_weights[i] = quantized(items.memory[i]);
            const float runtime = static_cast<float>(items.runtime[i]);
            next = row;
            for (size_t j = static_cast<size_t>(std::max<int64_t>(0, weight)); weight < kColumnCount && j < kColumns;
                 ++j) {
                const float taken = row[j - static_cast<size_t>(weight)] + runtime;
                next[j] = weight == 0 ? taken : std::max(row[j], taken);
                m_takes[i][j] = next[j] != row[j];
            }
            std::swap(row, next);
        }
    }
    std::vector<int> solve(double capacity) const override {
        std::vector<int> saved;
        int64_t left = std::min(quantized(capacity), kColumnCount - 1);
        for (size_t i = m_weights.size(); i-- > 0;)
            if (m_takes[i][static_cast<size_t>(left)]) {
                saved.push_back(static_cast<int>(i));
                left -= m_weights[i];
            }
        std::reverse(saved.begin(), saved.end());
        return saved;
    }

  private:
    static constexpr size_t kColumns = static_cast<size_t>(kQuanta) + 1;
    static constexpr int64_t kColumnCount = static_cast<int64_t>(kColumns);
    std::vector<int64_t> m_weights;
    std::vector<std::vector<bool>> m_takes;
};

/// The same by divide and conquer (Hirschberg's algorithm), keeping one row of the table: items are halved, and the
/// capacity is split where both halves save most runtime. As in PyTorch, the two parts add up to the capacity plus 1.
class Halving : public Knapsack {
  public:
    explicit Halving(KnapsackItems items) : m_runtime(std::move(items.runtime)) {
        for (const double memory : items.memory) m_weights.push_back(quantized(memory));
    }
    std::vector<int> solve(double capacity) const override {
        const int64_t all = quantized(capacity);
        struct Segment {
            size_t begin, end;
            int64_t capacity;
        };
        std::vector<int> saved;
        std::vector<Segment> open = {{0, m_weights.size(), all}};
        while (!open.empty()) {
            const Segment segment = open.back();
            open.pop_back();
            if (segment.end == segment.begin) continue;
            if (segment.end - segment.begin == 1) {
                if (m_weights[segment.begin] <= segment.capacity && m_runtime[segment.begin] > 0)
                    saved.push_back(static_cast<int>(segment.begin));
                continue;
            }
            const size_t middle = segment.begin + (segment.end - segment.begin) / 2;
            const std::vector<float> second = profile(middle, segment.end, segment.capacity),
                                     first = profile(segment.begin, middle, segment.capacity);
            size_t best = 0;
            float most = -std::numeric_limits<float>::infinity();
            for (size_t c = 0; c < second.size(); ++c)
                if (const float sum = second[c] + first[second.size() - 1 - c]; sum > most) {
                    most = sum;
                    best = c;
                }
            const int64_t given = static_cast<int64_t>(best);
            open.push_back({segment.begin, middle, std::clamp<int64_t>(segment.capacity + 1 - given, 0, all)});
            open.push_back({middle, segment.end, std::clamp<int64_t>(given, 0, all)});
        }
        std::sort(saved.begin(), saved.end());
        return saved;
    }

  private:
    /// What the items are worth at each capacity.
    std::vector<float> profile(size_t begin, size_t end, int64_t capacity) const {
        std::vector<float> row(static_cast<size_t>(capacity) + 1);
        for (size_t i = begin; i < end; ++i) {
            const float runtime = static_cast<float>(m_runtime[i]);
            if (m_weights[i] > capacity) continue;
            const size_t weight = static_cast<size_t>(m_weights[i]);
            for (size_t j = row.size(); j-- > weight;)
                row[j] = weight == 0 ? row[j] + runtime : std::max(row[j], row[j - weight] + runtime);
        }
        return row;
    }

    std::vector<double> m_runtime;
    std::vector<int64_t> m_weights;
};

/// Dynamic programming at the knee of the curve up to the capacity: the budget at which recomputed runtime and saved
/// memory, each scaled to 0 to 1, are closest to the origin.
class Knee : public Knapsack {
  public:
    explicit Knee(const KnapsackItems& items) : m_items(items), m_program(items) {}
    std::vector<int> solve(double capacity) const override { return m_program.solve(knee(capacity)); }

  private:
    double knee(double most) const {
        constexpr int kTried = 100;
        constexpr double kLeast = 0.001;
        std::vector<double> budgets, runtime, memory;
        for (int i = 0; i < kTried; ++i) {
            budgets.push_back(kLeast + i * (most - kLeast) / (kTried - 1));
            double saved = 0, held = 0, all = 0;
            for (const double each : m_items.runtime) all += each;
            for (const int item : m_program.solve(std::max(0.0, budgets.back()))) {
                saved += m_items.runtime[static_cast<size_t>(item)];
                held += m_items.memory[static_cast<size_t>(item)];
            }
            runtime.push_back(all - saved);
            memory.push_back(held);
        }
        const auto scaled = [](const std::vector<double>& values, double value) {
            const auto [least, largest] = std::minmax_element(values.begin(), values.end());
            return (value - *least) / (*largest - *least);
        };
        double best = std::numeric_limits<double>::infinity(), found = most;
        for (size_t i = 0; i < budgets.size(); ++i) {
            const double distance = std::hypot(scaled(runtime, runtime[i]), scaled(memory, memory[i]));
            if (distance < best) {  // false for NaN, which a range of one value gives
                best = distance;
                found = budgets[i];
            }
        }
        return found;
    }

    KnapsackItems m_items;
    DynamicProgram m_program;
};

/// An exact integer program.
class Integer : public Knapsack {
  public:
    explicit Integer(KnapsackItems items) : m_items(std::move(items)) {}
    std::vector<int> solve(double capacity) const override {
        return solveIntegerProgram(m_items.runtime, m_items.memory, capacity);
    }

  private:
    KnapsackItems m_items;
};

}  // namespace

std::unique_ptr<Knapsack> makeKnapsack(Solver solver, KnapsackItems items) {
    switch (solver) {
        case Solver::Greedy: return std::make_unique<Greedy>(std::move(items));
        case Solver::Ilp: return std::make_unique<Integer>(std::move(items));
        case Solver::Dp: return std::make_unique<DynamicProgram>(items);
        case Solver::Hirschberg: return std::make_unique<Halving>(std::move(items));
        case Solver::DynamicDp: return std::make_unique<Knee>(items);
    }
    return nullptr;
}

}  // namespace cutaway
