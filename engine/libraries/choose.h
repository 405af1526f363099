#pragma once
// Which calls libraries compute: one row an operator, with the test that says of a call why its library does not take
// it.
#include <span>
#include <string>

#include "engine/ir/node.h"

namespace cutaway {

/// The library of portable functions. They are slower than kernels, so their rows stand behind all others: of an
/// operator's rows the first that takes a call computes it.
constexpr std::string_view kPortable = "portable";

struct LibraryRow {
    std::string_view op;                      // "aten.mm.default"
    std::string_view library;                 // the name of its CtLibrary (libraries/library.h)
    std::string (*whyNot)(const Node& call);  // empty: the library computes this call
    /// Why the engine's reference kernel computes the call where there is an engine; null or empty: it does not.
    std::string (*whySlow)(const Node& call) = nullptr;
    /// The operand whose elements the library takes before it writes its result to their places, so that the result may
    /// lie over it if nobody else reads it; null: none.
    const Node* (*over)(const Node& call) = nullptr;
};
std::span<const LibraryRow> libraryRows();
/// The row that computes the call; null if none does. `alone`: in a program that has no engine beside it (exported).
const LibraryRow* libraryRowOf(const Node& call, bool alone = false);

/// The library that computes a call, as users read it: "mm (oneDNN)", "portable: aten.cumsum.default", or empty.
std::string libraryFor(const Node& node, bool alone = false);
/// Whether exported programs have a portable function for an operator whose results' sizes follow from its data.
bool hasFinder(std::string_view op);
/// Why no library computes a call, as a sentence (of the first that has the operator), or empty if one does.
std::string whyNoLibrary(const Node& node);

/// A concatenation of more parts than this is copies: kernels would choose among the parts element by element.
constexpr size_t kMaxParts = 4;
/// Whether a concatenation is made by copying its parts: they are many, tensors of the result's dtype and rank.
bool isCopiedConcatenation(const Node& node);

}  // namespace cutaway
