// Kernels and nests of a schedule, interpreted: no compiler has a part in what they give.
#include <cstring>

#include "engine/codegen/cpp_printer.h"
#include "engine/loops/interpret.h"
#include "engine/ops/eval.h"
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/plan.h"
#include "engine/schedule/schedule.h"
#include "tests/engine/lowering_harness.h"

namespace cutaway::testing {
namespace {

class KernelRun final : public ValueSource {
  public:
    KernelRun(const ScheduledProgram& program, const BoundProgram& bound, bool nests)
        : m_program(&program), m_bound(&bound), m_nests(nests), m_values(bound.plan.values.size()) {
        for (size_t i = 0; i < m_values.size(); ++i) {
            const PlanValue& value = bound.plan.values[i];
            if (value.kind == PlanValue::Kind::Given)
                m_values[i] = {copied(bound.given[static_cast<size_t>(value.index)])};
            else if (value.kind == PlanValue::Kind::Arena)
                m_values[i] = {Tensor::empty(value.dtype, value.sizes, value.strides)};
        }
    }
    const TensorList& valueOf(const Node& node) const override {
        const int64_t number = m_bound->plan.numberOf(node);
        const_cast<KernelRun*>(this)->value(number);
        return m_values[static_cast<size_t>(number)];
    }

    Result<std::vector<Tensor>> run() {
        for (size_t i = 0; i < m_bound->plan.calls.size(); ++i) {
            const PlanCall& call = m_bound->plan.calls[i];
            const ScheduledCall& scheduled = m_program->calls[i];
            CT_TRY_VOID(call.kind == CallKind::Kernel ? kernel(m_program->kernels[scheduled.kernel], call)
                                                      : external(call));
        }
        std::vector<Tensor> outputs;
        for (const int64_t number : m_bound->plan.outputs)
            outputs.push_back(number < 0 ? Tensor() : copied(value(number)));
        return outputs;
    }

  private:
    static Tensor copied(const Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        Tensor copy = Tensor::empty(tensor.dtype(), tensor.sizes(), tensor.strides());
        copyInto(copy, tensor);
        return copy;
    }
    const Tensor& value(int64_t number) {
        const PlanValue& plan = m_bound->plan.values[static_cast<size_t>(number)];
        TensorList& slot = m_values[static_cast<size_t>(number)];
        if (plan.kind == PlanValue::Kind::View) {
            const Tensor& base = value(plan.index);
            slot = {Tensor(base.storage(), plan.dtype, plan.sizes, plan.strides,
                           base.offset() * byteSize(base.dtype()) / byteSize(plan.dtype) + plan.offset)};
        }
        return slot.at(0);
    }
    Result<void> kernel(const PlannedKernel& planned, const PlanCall& call) {
        if (call.launches.empty()) return {};  // nothing is stored
        std::vector<void*> pointers;
        for (size_t i = 0; i < planned.kernel.buffers.size(); ++i)
            pointers.push_back(const_cast<void*>(value(call.buffers[i]).data()));
        std::map<std::string, int64_t> sizes;
        for (size_t i = 0; i < planned.kernel.sizes.size(); ++i) sizes[planned.kernel.sizes[i]] = call.sizes[i];
        const KernelFault fault = m_nests ? interpretNests(lowerLoops(planned.kernel, planned.plan), pointers, sizes, 7)
                                          : interpretKernel(planned.kernel, pointers, sizes);
        return fault == KernelFault::None ? Result<void>() : invalidInput("the kernel failed", call.checking);
    }
    Result<void> external(const PlanCall& call) {
        EvalResult computed = evaluateCall(*findOp(call.function), call.args, call.type, *this);
        if (!computed.ok()) return std::move(computed.error());
        for (size_t r = 0; r < call.results.size(); ++r)
            if (call.results[r] >= 0) m_values[static_cast<size_t>(call.results[r])] = {computed.tensors().at(r)};
        return {};
    }

    const ScheduledProgram* m_program;
    const BoundProgram* m_bound;
    bool m_nests;
    std::vector<TensorList> m_values;
};

}  // namespace

Way interpretedKernels(bool nests) {
    return {nests ? "nests, interpreted" : "kernels, interpreted",
            [nests](const std::shared_ptr<const Module>& module,
                    const std::vector<Tensor>& inputs) -> Result<std::vector<WayRun>> {
                CT_TRY(const ScheduledProgram program, scheduleModule(module));
                std::vector<PrintedKernel> printed;
                for (const PlannedKernel& own : program.kernels)
                    printed.push_back(printCpp(lowerLoops(own.kernel, own.plan)));
                CT_TRY(const BoundProgram bound, bindProgram(program, printed, {}, inputs));
                CT_TRY(std::vector<Tensor> outputs, KernelRun(program, bound, nests).run());
                return std::vector<WayRun>{{"once", std::move(outputs)}};
            }};
}

}  // namespace cutaway::testing
