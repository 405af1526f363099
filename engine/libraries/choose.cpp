#include "engine/libraries/choose.h"

#include <algorithm>
#include <unordered_map>

#include "engine/libraries/conditions.h"

namespace cutaway {
namespace {
using Rows = std::vector<const LibraryRow*>;

/// The operator's rows in the order of the table. Hashed, since every node is asked about, more than once.
const Rows& rowsNamed(std::string_view op) {
    static const auto& byOp = *new std::unordered_map<std::string_view, Rows>([] {
        std::unordered_map<std::string_view, Rows> all;
        for (const LibraryRow& row : libraryRows()) all[row.op].push_back(&row);
        return all;
    }());
    static const Rows none;
    const auto found = byOp.find(op);
    return found == byOp.end() ? none : found->second;
}
/// The device's rows of a call's operator; for one in place (add_) also the rows of its functional form that
/// compute it.
Rows rowsOf(const Node& call, const TargetInfo& target) {
    Rows rows;
    if (!call.isCall()) return rows;
    for (const LibraryRow* row : rowsNamed(call.op().name()))
        if (row->library.device == target.device.type) rows.push_back(row);
    if (const Op* functional = call.op().functional())
        for (const LibraryRow* row : rowsNamed(functional->name()))
            if (row->library.device == target.device.type && row->isFunction()) rows.push_back(row);
    return rows;
}
}  // namespace

std::span<const Library* const> allLibraries() {
#define CUTAWAY_LIBRARY(constant, ...) &constant,
    static constexpr const Library* kAll[] = {CUTAWAY_LIBRARIES(CUTAWAY_LIBRARY)};
#undef CUTAWAY_LIBRARY
    return kAll;
}

const LibraryRow* libraryRowOf(const Node& call, const TargetInfo& target, bool alone) {
    for (const LibraryRow* row : rowsOf(call, target)) {
        if (!row->whyNot(call, target).empty()) continue;
        if (alone || row->whySlow == nullptr || row->whySlow(call).empty()) return row;
    }
    return nullptr;
}

const LibraryRow* finderOf(std::string_view op, const TargetInfo& target) {
    for (const LibraryRow* row : rowsNamed(op))
        if (row->library.device == target.device.type && row->whyNot == whyNotFound) return row;
    return nullptr;
}

std::string whyNoLibrary(const Node& call, const TargetInfo& target) {
    std::string first;
    for (const LibraryRow* row : rowsOf(call, target)) {
        std::string why = row->whyNot(call, target);
        if (why.empty() && row->whySlow) why = row->whySlow(call);
        if (why.empty()) return {};
        if (first.empty()) first = std::move(why);
    }
    return first.empty() ? "no library computes it" : first;
}

bool roundsToTf32(const LibraryRow& row, const Node& call, const TargetInfo& target) {
    if (target.tf32 == Tf32::None || (&row.library != &kCudnn && &row.library != &kCublasLt)) return false;
    const auto inputs = call.inputs();
    const bool single = std::all_of(inputs.begin(), inputs.end(), [](const Node* input) {
        const TensorType* const type = input->type().tensor();
        return type == nullptr || type->dtype == DType::F32;
    });
    if (!single || inputs.empty()) return false;
    return target.tf32 == Tf32::All || (&row.library == &kCudnn && call.arg("transposed").asInt().value_or(1) == 0);
}

std::string libraryText(const LibraryRow& row, const Node& call, const TargetInfo& target) {
    const std::string name(row.library.name);
    if (&row.library == &kPortable) return name + ": " + call.op().name();
    return std::string(call.op().baseName()) + " (" + name + (roundsToTf32(row, call, target) ? ", TF32)" : ")");
}

bool isCopiedConcatenation(const Node& node, const TargetInfo& target) {
    if (!node.isCall("aten.cat.default") || node.arg(size_t{0}).list() == nullptr) return false;
    const auto& parts = *node.arg(size_t{0}).list();
    const TensorType* result = node.type().tensor();
    if (parts.size() <= target.fusion.parts || result == nullptr) return false;
    return std::all_of(parts.begin(), parts.end(), [&](const Argument& part) {
        const TensorType* type = part.node() ? part.node()->type().tensor() : nullptr;
        return type && type->dtype == result->dtype && type->sizes.size() == result->sizes.size();
    });
}

}  // namespace cutaway
