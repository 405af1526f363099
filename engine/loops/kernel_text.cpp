#include "engine/loops/kernel_text.h"

#include "engine/loops/expr_writer.h"

namespace cutaway {

std::string text(const Kernel& kernel) {
    ExprWriter exprs([&](const Expr& load) { return kernel.buffers.at(static_cast<size_t>(bufferOf(load))).dtype; });
    std::vector<Expr> roots;
    for (const KernelStore& store : kernel.stores)
        for (const Expr& root : {store.index, store.value}) roots.push_back(exprs.unique(root));
    exprs.chooseNames(roots);
    std::string out = kernel.name + "(" + buffersText(kernel.buffers);
    for (const std::string& size : kernel.sizes) out += (out.back() == '(' ? "" : ", ") + symbolText(size);
    out += ")\n";
    if (!kernel.outer.empty()) out += "for " + exprs.loops(kernel.outer) + ":\n";
    const auto line = [&](const std::string& code) { out += (kernel.outer.empty() ? "" : "  ") + code + "\n"; };
    for (size_t s = 0; s < kernel.stores.size(); ++s) {
        const KernelStore& store = kernel.stores[s];
        const Expr &index = roots[2 * s], &value = roots[2 * s + 1];
        for (const std::string& definition : exprs.definitions({index, value})) line(definition);
        line(bufferName(store.buffer) + "[" + exprs.shown(index) + (store.adds ? "] += " : "] = ") +
             exprs.shown(value) + (store.inner.empty() ? "" : " for " + exprs.loops(store.inner)));
    }
    return out;
}

}  // namespace cutaway
