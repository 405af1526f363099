// Portable functions as a library: each call runs the function of its operator.
#include "engine/runtime/portable/portable.h"

#include <deque>
#include <vector>

#include "engine/runtime/libraries/library_plan.h"
#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

/// A call with memory of its own, since plans may outlive what they were made from.
class CopiedCall {
  public:
    explicit CopiedCall(const CtCall& call) : m_call(call), m_op(call.op) {
        m_args = &copied(call.args, call.argCount);
        for (int32_t i = 0; i < call.operandCount; ++i) m_operands.push_back(copied(call.operands[i]));
        for (int32_t i = 0; i < call.resultCount; ++i) m_results.push_back(copied(call.results[i]));
        m_call.op = m_op.c_str();
        m_call.args = m_args->data();
        m_call.operands = m_operands.data();
        m_call.results = m_results.data();
        m_call.constant = nullptr;
    }
    CopiedCall(const CopiedCall&) = delete;
    CopiedCall& operator=(const CopiedCall&) = delete;
    const CtCall& call() const { return m_call; }

  private:
    const std::vector<CtArgument>& copied(const CtArgument* args, int64_t count) {
        std::vector<CtArgument> own(args, args + count);
        for (CtArgument& arg : own) {
            if (arg.kind == CT_TEXT) arg.text = m_texts.emplace_back(arg.text).c_str();
            if (arg.kind == CT_LIST) arg.items = copied(arg.items, arg.integer).data();
        }
        return m_lists.emplace_back(std::move(own));
    }
    CtTensor copied(const CtTensor& tensor) {
        CtTensor own = tensor;
        const auto rank = std::max(tensor.rank, 0);
        own.sizes = m_dims.emplace_back(tensor.sizes, tensor.sizes + rank).data();
        own.strides = m_dims.emplace_back(tensor.strides, tensor.strides + rank).data();
        return own;
    }

    CtCall m_call;
    std::string m_op;
    std::deque<std::string> m_texts;
    std::deque<std::vector<CtArgument>> m_lists;
    std::deque<std::vector<int64_t>> m_dims;
    const std::vector<CtArgument>* m_args;
    std::vector<CtTensor> m_operands, m_results;
};

class PortablePlan final : public LibraryPlan {
  public:
    PortablePlan(const portable::Function& function, const CtCall& call, int32_t tasks)
        : m_function(&function), m_call(call), m_tasks(tasks) {}
    void run(const LibraryRun& run) const override {
        portable::runCall(*m_function, {&m_call.call(), run.operands, run.results, reinterpret_cast<char*>(run.scratch),
                                        run.parallel, m_tasks});
    }

  private:
    const portable::Function* m_function;
    CopiedCall m_call;
    int32_t m_tasks;
};

void check(const CtTensor& tensor, const char* what) {
    if (tensor.rank > CT_MAX_RANK)
        throw LibraryRefusal(std::string(what) + " has " + std::to_string(tensor.rank) + " dims, and portable " +
                             "functions take up to " + std::to_string(CT_MAX_RANK));
    if (tensor.rank >= 0 && (tensor.dtype < CT_U8 || tensor.dtype > CT_U64))
        throw LibraryRefusal(std::string(what) + " has a dtype that portable functions do not compute in");
}

std::unique_ptr<LibraryPlan> planPortable(const CtCall& call, int threads, CtNeeds& needs) {
    const portable::Function* const function = portable::functionOf(call.op);
    if (function == nullptr) throw LibraryRefusal("there is no portable function for " + std::string(call.op));
    for (int32_t i = 0; i < call.operandCount; ++i) check(call.operands[i], "an operand");
    for (int32_t i = 0; i < call.resultCount; ++i) check(call.results[i], "a result");
    const int32_t tasks = std::max(threads, 1);
    if (function->scratch) needs.scratch = function->scratch(call, tasks);
    return std::make_unique<PortablePlan>(*function, call, tasks);
}

}  // namespace

const CtLibrary& portableLibrary() {
    static const CtLibrary library = makeLibrary<planPortable>("portable");
    return library;
}

}  // namespace cutaway
