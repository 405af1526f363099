#include "engine/passes/lowering_calls.h"

#include <algorithm>

#include "engine/ops/alias.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

std::string_view unlessBeginningIsOfFirst(const Match& m) {
    const auto size = symIntOf(m["size"]);
    if (!size || !size->isInt() || size->value() < 0)
        return "the length of the repeated beginning, {size}, is not a known number";
    if (!m.isTensor("first") || m.tensor("first").rank() < 2) return "{first}, {first:type}, has no dim 1";
    return knownLessEqual(*size, m.tensor("first").sizes[1])
               ? ""
               : "the repeated beginning, {size}, is longer than {first}, {first:type}";
}

/// The first call that writes to memory that the node shares; null if none does. A call that writes at all counts as
/// writing to all its operands.
const Node* writerOf(const Node& node) {
    for (const Node* sharer : sharersOf(storageRoot(node)))
        for (const Node* user : sharer->users())
            if (user->isCall() && user->op().mutates()) return user;
    return nullptr;
}
bool isWrittenTo(const Node& node) { return writerOf(node) != nullptr; }
std::string_view unlessWrittenTo(const Match& m) {
    if (m.parity() || !m.isTensor("x")) return "";
    for (const Node* value : {&m.node("x"), &m.root()}) {
        const Node* writer = writerOf(*value);
        if (writer == nullptr) continue;
        m.note("`" + writer->name() + "` (" + writer->op().name() + ") writes");
        return value == &m.root() ? "{y} is written to in place" : "{x} is written to in place";
    }
    return "";
}

/// The expansion of the call by its row: the same values in memory of their own.
Values buildWrittenOut(const Match& m, GraphBuilder& builder) {
    Decomposition call(m.root(), builder);
    return m.root().op().def()->decompose(call);
}

std::string_view unlessItemsAreRead(const Match& m) {
    const auto* items = m["items"].list();
    if (items == nullptr) return "{items} is not a list";
    for (const Node* reader : m.root().users()) {
        const auto item = reader->isCall("operator.getitem") ? reader->arg(1).asInt() : std::nullopt;
        if (item && *item >= 0 && static_cast<size_t>(*item) < items->size()) continue;
        m.note(reader->isOutput() ? "it is returned" : "`" + reader->name() + "` reads it");
        return "{y} is not read item by item";
    }
    return "";
}
/// For each item that is read the tensor itself, or a copy where sharing its memory is not allowed.
Values buildItems(const Match& m, GraphBuilder& builder) {
    const auto* items = m["items"].list();
    std::vector<const Node*> readers(items->size());
    for (const Node* reader : m.root().users()) readers[static_cast<size_t>(*reader->arg(1).asInt())] = reader;
    std::vector<Value> results(items->size());
    std::vector<const Node*> given;  // roots of what is handed on
    for (size_t i = 0; i < items->size(); ++i) {
        Node* item = (*items)[i].node();
        const Node* reader = readers[i];
        if (reader == nullptr) continue;
        const Node* root = &storageRoot(*item);
        bool shares = m.parity();
        if (!shares && std::find(given.begin(), given.end(), root) == given.end())
            shares = !isWrittenTo(*item) &&
                     std::all_of(m.root().users().begin(), m.root().users().end(), [&](const Node* each) {
                         return each->arg(1).asInt() != static_cast<int64_t>(i) ||
                                (mayReplace(*each, *item) && !isWrittenTo(*each));
                     });
        results[i] = shares ? builder.value(*item) : unary("aten.clone.default", builder.value(*item));
        if (shares) given.push_back(root);
    }
    return results;
}

constexpr Rule kLoweringRules[] = {
    {.name = "fold_cat_slice_cat",
     .find = "y = torch__inductor_fx_passes_post_grad_cat_slice_cat([first, *others], size); return y",
     .replace = "s = aten.slice.Tensor(first, 1, 0, size); y = aten.cat.default([first, *others, s], 1); return y",
     .unless = unlessBeginningIsOfFirst,
     .why = "one concatenation copies each part once"},
    {.name = "write_out_cat_slice_cat",
     .find = "y = torch__inductor_fx_passes_post_grad_cat_slice_cat(_, _); return y",
     .build = buildWrittenOut,
     .why = "the repeated beginning lies in the concatenation, which is needed by itself"},
    {.name = "reuse_split_source",
     .find = "y = torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace(x); return y",
     .replace = "return x",
     .unless = unlessWrittenTo,
     .why = "putting all pieces of a split together gives what was split"},
    {.name = "copy_split_source",
     .find = "y = torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace(_); return y",
     .build = buildWrittenOut,
     .why = "putting all pieces of a split together gives what was split, and it needs memory of its own"},
    {.name = "reuse_concatenated",
     .find = "y = torch__inductor_fx_passes_post_grad_cat_splitwithsizes_replace(items); return y",
     .build = buildItems,
     .unless = unlessItemsAreRead,
     .why = "the pieces are the tensors that were concatenated"},
};

}  // namespace

std::span<const Rule> loweringCallRules() { return kLoweringRules; }

Result<bool> lowerCalls(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kLoweringRules); }

}  // namespace cutaway
