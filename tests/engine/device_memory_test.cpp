// Host programs on a device whose memory the host cannot read: what a GPU is, without one.
#include "engine/runtime/device_memory.h"

#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/support/check.h"
#include "tests/engine/lowering_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

namespace cutaway::testing {
namespace {

/// Memory of this process that passes for another's: whoever reads it but by copies is found.
class FakeDeviceMemory final : public DeviceMemory {
  public:
    int copies = 0;  // to the host

    bool isHost() const override { return false; }
    Result<std::shared_ptr<Storage>> allocate(size_t bytes) override {
        const auto memory = Storage::allocate(bytes);
        return Storage::foreign(memory->data(), bytes, memory);
    }
    Result<void> toDevice(void* to, const void* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    Result<void> toHost(void* to, const void* from, size_t bytes) override {
        ++copies;
        std::memcpy(to, from, bytes);
        return {};
    }
    Result<void> wait() override { return {}; }
    void emptyCaches(const ThreadPool&) override {}
    Mark mark() override { return {}; }
    double microseconds(const Mark&, const Mark&) override { return 1; }
    void forget(const Mark&) override {}
    Result<Replay> record(const std::function<Result<void>()>&) override { return Replay(); }
    void* stream() const override { return nullptr; }
};

struct Row {
    const char* name;
    const char* graph;
};
constexpr Row kRows[] = {
    {"kernels", R"py(
def forward(self, x: "f32[4, 6]", y: "f32[6]"):
    add = torch.ops.aten.add.Tensor(x, y)
    sum_1 = torch.ops.aten.sum.dim_IntList(add, [1])
    return (add, sum_1)
)py"},
    {"a call on the host between kernels", R"py(
def forward(self, x: "f32[4, 6]"):
    exp = torch.ops.aten.exp.default(x)
    sort = torch.ops.aten.sort.default(exp, 1)
    getitem = sort[0]
    getitem_1 = sort[1]
    mul = torch.ops.aten.mul.Tensor(getitem, 2.0)
    return (mul, getitem_1)
)py"},
    {"products", R"py(
def forward(self, x: "f32[4, 6]", w: "f32[6, 3]", b: "f32[3]"):
    addmm = torch.ops.aten.addmm.default(b, x, w)
    relu = torch.ops.aten.relu.default(addmm)
    return (relu,)
)py"},
    {"views", R"py(
def forward(self, x: "f32[4, 6]"):
    mul = torch.ops.aten.mul.Tensor(x, x)
    permute = torch.ops.aten.permute.default(mul, [1, 0])
    slice_1 = torch.ops.aten.slice.Tensor(mul, 1, 2, 5)
    return (permute, slice_1)
)py"},
    {"a call on the host that writes to a view", R"py(
def forward(self, x: "f32[4, 6]", y: "f32[6]"):
    exp = torch.ops.aten.exp.default(x)
    select = torch.ops.aten.select.int(exp, 0, 2)
    copy_ = torch.ops.aten.copy_.default(select, y)
    return (exp,)
)py"},
    {"sizes from data", R"py(
def forward(self, x: "i64[8]"):
    nonzero = torch.ops.aten.nonzero.default(x)
    add = torch.ops.aten.add.Tensor(nonzero, 1)
    return (add,)
)py"},
};

bool sameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
        const Tensor left = a[i].contiguous(), right = b[i].contiguous();
        if (left.sizes() != right.sizes() || std::memcmp(left.data(), right.data(), left.bytes()) != 0) return false;
    }
    return true;
}

}  // namespace
}  // namespace cutaway::testing

using namespace cutaway;
using namespace cutaway::testing;

class DeviceMemoryTest : public QObject {
    Q_OBJECT

  private slots:
    void hostReadsNoForeignMemory() {
        const auto owner = Storage::allocate(64);
        const auto foreign = Storage::foreign(owner->data(), 64, owner);
        QVERIFY(foreign->isForeign() && !owner->isForeign());
        QCOMPARE(foreign->address(), owner->data());
        QVERIFY_THROWS_EXCEPTION(InternalError, (void)foreign->data());
        const Tensor tensor(foreign, DType::F32, {4, 4}, {4, 1});
        QVERIFY_THROWS_EXCEPTION(InternalError, (void)tensor.data());
    }
    void programsRun_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kRows); ++i) QTest::newRow(kRows[i].name) << static_cast<int>(i);
    }
    void programsRun() {
        QFETCH(int, row);
        const Snapshot module = moduleOf(kRows[row].graph);
        const auto inputs = randomInputs(*module, 3);
        QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
        const auto wanted = interpretedKernels(Interpreted::Kernels, kCpuTarget).run(module, *inputs);
        QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
        const auto device = std::make_shared<FakeDeviceMemory>();
        const auto got = interpretedKernels(Interpreted::Kernels, kCpuTarget, 0, device).run(module, *inputs);
        QVERIFY2(got.has_value(), got ? "" : got.error().text().c_str());
        QCOMPARE(got->size(), size_t{2});
        for (const WayRun& run : *got) QVERIFY2(sameBits(run.outputs, (*wanted)[0].outputs), run.name.c_str());
        QVERIFY(device->copies > 0);
    }
};

CUTAWAY_SUITE(DeviceMemoryTest)
#include "device_memory_test.moc"
