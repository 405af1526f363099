// What an exported program keeps of libraries' plans: a few for each call, and constants packed once for those alike.
#include <QtTest>
#include <array>

#include "engine/runtime/exported/host_support.h"
#include "tests/support/suites.h"

namespace cutaway {
namespace {

/// What a library of nothing but counting was asked for.
struct Counts {
    int plans = 0, alive = 0, packs = 0;
} counts;
/// Packing depends on whether rows are odd; rows above 900 are refused.
struct CountingPlan {
    int64_t rows;
};
const CountingPlan& own(const CtPlan* plan) { return *reinterpret_cast<const CountingPlan*>(plan); }

CtLibrary countingLibrary() {
    CtLibrary library{};
    library.version = CT_LIBRARY_VERSION;
    library.bytes = sizeof(CtLibrary);
    library.name = "counting";
    library.plan = [](const CtCall* call, int32_t, CtNeeds* needs) -> CtPlan* {
        const int64_t rows = call->operands[0].sizes[0];
        if (rows > 900) return nullptr;
        *needs = {0, 64};
        ++counts.plans;
        ++counts.alive;
        return reinterpret_cast<CtPlan*>(new CountingPlan{rows});
    };
    library.pack = [](const CtPlan* plan, const CtTensor* operands, void* packed) -> int32_t {
        ++counts.packs;
        *static_cast<float*>(packed) = *static_cast<const float*>(operands[1].data) + (own(plan).rows % 2 ? 0.5f : 0);
        return 0;
    };
    library.run = [](const CtPlan*, const CtTensor*, const CtTensor* results, const void* packed, void*,
                     const CtParallel*) -> int32_t {
        *static_cast<float*>(results[0].data) = *static_cast<const float*>(packed);
        return 0;
    };
    library.drop = [](CtPlan* plan) {
        --counts.alive;
        delete reinterpret_cast<CountingPlan*>(plan);
    };
    library.error = []() -> const char* { return "too many rows"; };
    library.packAlike = [](const CtPlan* a, const CtPlan* b) -> int32_t {
        return own(a).rows % 2 == own(b).rows % 2 ? 1 : 0;
    };
    return library;
}
const CtHost kHost{CT_PROGRAM_VERSION, sizeof(CtHost), [](const char*) -> const CtLibrary* {
                       static const CtLibrary library = countingLibrary();
                       return &library;
                   }};

/// One step of a program, run for some rows.
class Run {
  public:
    explicit Run(CtProgram& program, int64_t step = 0) : m_step(step) {
        m_context.program = &program;
        m_context.weights = program.current;
        m_context.parallel.threads = 1;
    }
    /// What the step made; negative: it failed.
    float operator()(int64_t rows) {
        const std::array<int64_t, 1> one{1}, many{rows};
        float result = -2;
        m_frame.begin({rows});
        const std::array<CtTensor, 2> operands{CtTensor{nullptr, CT_F32, 1, many.data(), one.data()},
                                               CtTensor{&s_weight, CT_F32, 1, one.data(), one.data()}};
        const CtTensor made{&result, CT_F32, 1, one.data(), one.data()};
        const std::array<uint8_t, 2> constant{0, 1};
        CtCall call{};
        call.op = "test.rows.default";
        call.operandCount = 2;
        call.resultCount = 1;
        call.operands = operands.data();
        call.constant = constant.data();
        call.results = &made;
        return m_frame.call(static_cast<size_t>(m_step), "rows", "counting", call, 0) == 0 ? result : -1;
    }
    std::string error() const { return m_context.error; }

  private:
    static inline float s_weight = 2;
    int64_t m_step;
    CtContext m_context;
    ct::Frame m_frame{m_context, 0, 2};
};

class ExportedPlansTest : public QObject {
    Q_OBJECT
  private slots:
    void init() { counts = {}; }

    void plansOfManySizesAreLimited() {
        {
            CtProgram program;
            program.host = &kHost;
            Run run(program);
            for (int64_t rows = 1; rows <= 500; ++rows) QCOMPARE(run(rows), rows % 2 ? 2.5f : 2.0f);
            QCOMPARE(counts.plans, 500);
            QCOMPARE(counts.alive, 8);
            QCOMPARE(counts.packs, 2);  // those alike share their packed constant
            for (int64_t rows = 493; rows <= 500; ++rows) QCOMPARE(run(rows), rows % 2 ? 2.5f : 2.0f);
            QCOMPARE(counts.plans, 500);  // the latest are still there
            run(493);
            run(600);
            run(493);
            QCOMPARE(counts.plans, 501);  // what is used again stays
            Run other(program, 1);
            QCOMPARE(other(493), 2.5f);
            QCOMPARE(counts.plans, 502);  // another step has plans of its own
        }
        QCOMPARE(counts.alive, 0);
    }

    void contextsShare() {
        CtProgram program;
        program.host = &kHost;
        Run first(program), second(program);
        QCOMPARE(first(4), 2.0f);
        QCOMPARE(second(4), 2.0f);
        QCOMPARE(counts.plans, 1);
        // A plan that a context runs lives on when the program has forgotten it.
        for (int64_t rows = 10; rows < 40; ++rows) second(rows);
        QCOMPARE(counts.alive, 9);
        QCOMPARE(first(4), 2.0f);
        QCOMPARE(counts.plans, 31);
    }

    void refusalsAreNotKept() {
        CtProgram program;
        program.host = &kHost;
        Run run(program);
        QCOMPARE(run(901), -1.0f);
        QCOMPARE(run.error(), std::string("rows: too many rows"));
        QCOMPARE(run(3), 2.5f);
        QCOMPARE(counts.alive, 1);
    }
};

}  // namespace

CUTAWAY_SUITE(ExportedPlansTest)

}  // namespace cutaway

#include "exported_plans_test.moc"
