#include "engine/libraries/choose.h"

#include <algorithm>
#include <iterator>
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
/// The rows of a call's operator; for one in place (add_) also the portable rows of its functional form.
Rows rowsOf(const Node& call) {
    if (!call.isCall()) return {};
    Rows rows = rowsNamed(call.op().name());
    if (const Op* functional = call.op().functional())
        std::ranges::copy_if(rowsNamed(functional->name()), std::back_inserter(rows),
                             [](const LibraryRow* row) { return row->library == kPortable; });
    return rows;
}
}  // namespace

const LibraryRow* libraryRowOf(const Node& call, bool alone) {
    for (const LibraryRow* row : rowsOf(call)) {
        if (!row->whyNot(call).empty()) continue;
        if (alone || row->whySlow == nullptr || row->whySlow(call).empty()) return row;
    }
    return nullptr;
}

bool hasFinder(std::string_view op) {
    return std::ranges::any_of(rowsNamed(op), [](const LibraryRow* row) { return row->whyNot == whyNotFound; });
}

std::string whyNoLibrary(const Node& node) {
    std::string first;
    for (const LibraryRow* row : rowsOf(node)) {
        std::string why = row->whyNot(node);
        if (why.empty() && row->whySlow) why = row->whySlow(node);
        if (why.empty()) return {};
        if (first.empty()) first = std::move(why);
    }
    return first.empty() ? "no library computes it" : first;
}

std::string libraryFor(const Node& node, bool alone) {
    const LibraryRow* const row = libraryRowOf(node, alone);
    if (row == nullptr) return {};
    if (row->library == kPortable) return std::string(kPortable) + ": " + node.op().name();
    return std::string(node.op().baseName()) + " (" + std::string(row->library) + ")";
}

bool isCopiedConcatenation(const Node& node) {
    if (!node.isCall("aten.cat.default") || node.arg(size_t{0}).list() == nullptr) return false;
    const auto& parts = *node.arg(size_t{0}).list();
    const TensorType* result = node.type().tensor();
    if (parts.size() <= kMaxParts || result == nullptr) return false;
    return std::all_of(parts.begin(), parts.end(), [&](const Argument& part) {
        const TensorType* type = part.node() ? part.node()->type().tensor() : nullptr;
        return type && type->dtype == result->dtype && type->sizes.size() == result->sizes.size();
    });
}

}  // namespace cutaway
