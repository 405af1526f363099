#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

std::span<const std::span<const Function>> allFunctions() {
    static const std::span<const Function> all[] = {
        scanFunctions(),      orderFunctions(),      scatterFunctions(),   indexFunctions(),
        maskFunctions(),      windowFunctions(),     gridFunctions(),      productFunctions(),
        drawFunctions(),      quantizedFunctions(),  findFunctions(),      findDistinctFunctions(),
        bagFunctions(),       bagWeightsFunctions(), antialiasFunctions(), reduceFunctions(),
        moveFunctions(),      pointwiseFunctions(),  poolFunctions(),      makeFunctions(),
        transformFunctions(), observeFunctions(),    convolveFunctions()};
    return all;
}

bool isInPlace(std::string_view op) {
    const size_t overload = op.rfind('.');
    return overload != std::string_view::npos && overload > 0 && op[overload - 1] == '_';
}
const Function* functionOf(std::string_view op) {
    std::string functional(op);
    if (isInPlace(op)) functional.erase(op.rfind('.') - 1, 1);
    for (const std::span<const Function> file : allFunctions())
        for (const Function& function : file)
            if (functional == function.op) return &function;
    return nullptr;
}

void runCall(const Function& function, Run run) {
    if (!isInPlace(run.call->op)) return function.run(run);
    const CtTensor result = *run.results, &target = run.operands[run.call->args[0].integer];
    run.results = &target;
    function.run(run);
    if (result.rank >= 0) copyAll(run, Strided(target), Strided(result));
}

}  // namespace cutaway::portable
