// Portable functions as a library: each call runs the function of its operator.
#include "engine/runtime/portable/portable.h"

#include <algorithm>
#include <string>

#include "engine/runtime/libraries/library_plan.h"
#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

class PortablePlan final : public LibraryPlan {
  public:
    PortablePlan(const portable::Function& function, const CtCall& call, int32_t tasks)
        : m_function(&function), m_call(&call), m_tasks(tasks) {}
    void run(const LibraryRun& run) const override {
        portable::runCall(*m_function, {m_call, run.operands, run.results, reinterpret_cast<char*>(run.scratch),
                                        run.parallel, m_tasks});
    }

  private:
    const portable::Function* m_function;
    const CtCall* m_call;
    int32_t m_tasks;
};

void check(const CtTensor& tensor, const char* what) {
    if (tensor.rank > CT_MAX_RANK)
        throw LibraryRefusal(std::string(what) + " has " + std::to_string(tensor.rank) + " dims, and portable " +
                             "functions take up to " + std::to_string(CT_MAX_RANK));
    if (tensor.rank >= 0 && (tensor.dtype < CT_U8 || tensor.dtype > CT_U64))
        throw LibraryRefusal(std::string(what) + " has a dtype that portable functions do not compute in");
}

}  // namespace

std::unique_ptr<LibraryPlan> planPortable(const CtCall& call, int threads, CtNeeds& needs) {
    return planFunction(portable::functionOf(call.op), call, threads, needs);
}
std::unique_ptr<LibraryPlan> planFunction(const portable::Function* function, const CtCall& call, int threads,
                                          CtNeeds& needs) {
    if (function == nullptr) throw LibraryRefusal("there is no portable function for " + std::string(call.op));
    for (int32_t i = 0; i < call.operandCount; ++i) check(call.operands[i], "an operand");
    for (int32_t i = 0; i < call.resultCount; ++i) check(call.results[i], "a result");
    const int32_t tasks = std::max(threads, 1);
    if (function->scratch) needs.scratch = function->scratch(call, tasks);
    return std::make_unique<PortablePlan>(*function, call, tasks);
}

const CtLibrary& portableLibrary() {
    static const CtLibrary library = makeLibrary<planPortable>("portable");
    return library;
}

}  // namespace cutaway
