#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

std::span<const std::span<const Function>> allFunctions() {
    static const std::span<const Function> all[] = {scanFunctions(),  orderFunctions(),  scatterFunctions(),
                                                    indexFunctions(), maskFunctions(),   windowFunctions(),
                                                    gridFunctions(),  productFunctions()};
    return all;
}

const Function* functionOf(std::string_view op) {
    for (const std::span<const Function> file : allFunctions())
        for (const Function& function : file)
            if (op == function.op) return &function;
    return nullptr;
}

}  // namespace cutaway::portable
