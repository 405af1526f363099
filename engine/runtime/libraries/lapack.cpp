// Linear algebra as a library: each call runs the function of its operator (lapack_functions.cpp), which calls LAPACK.
#include <algorithm>

#include "engine/runtime/libraries/library_plan.h"
#include "engine/runtime/libraries/table.h"
#include "engine/runtime/portable/portable.h"

namespace cutaway {

static std::unique_ptr<LibraryPlan> planLapack(const CtCall& call, int threads, CtNeeds& needs) {
    const auto all = portable::linearFunctions();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return portable::is(call, each.op); });
    return planFunction(found == all.end() ? nullptr : &*found, call, threads, needs);
}

const CtLibrary& lapackLibrary() {
    static const CtLibrary library = makeLibrary<planLapack>("LAPACK");
    return library;
}

}  // namespace cutaway
