#pragma once
// Reads pickles without executing anything: opcodes become a tree, and nothing is ever called. A GLOBAL is a pair of
// names, a REDUCE records what would be called with what. The reader of the tree decides what it means (torch_save.h).
// Spec: input-formats §2, SAVE-2 and SAVE-4.
#include <complex>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

enum class PickleKind : uint8_t {
    None,
    Bool,
    Int,
    Real,
    Text,
    Bytes,
    Tuple,
    List,
    Dict,  // items: key, value, key, value, ...
    Set,
    Global,      // text: "module name"
    Reduce,      // items: callable, arguments, state (null if none), then what was appended or set on the object
    Persistent,  // items: the persistent id
};

struct PickleNode {
    PickleKind kind = PickleKind::None;
    std::variant<std::monostate, int64_t, double, std::string> value;
    std::vector<const PickleNode*> items;

    int64_t integer() const { return std::get<int64_t>(value); }              // Bool, Int
    double real() const { return std::get<double>(value); }                   // Real
    const std::string& text() const { return std::get<std::string>(value); }  // Text, Bytes, Global
    bool isText(std::string_view wanted) const { return kind == PickleKind::Text && text() == wanted; }
};

/// Owns all nodes in one flat list, so that freeing it needs no recursion. The tree below `root` has no cycle and at
/// most 256 levels, and writing out what is shared would give at most 10^7 nodes.
struct PickleTree {
    std::deque<PickleNode> nodes;
    const PickleNode* root = nullptr;
    /// Names of all GLOBALs, "module name", each once, in order of appearance.
    std::vector<std::string> globals;
};

/// Protocols 2 to 5. Errors show the opcode's byte and its offset. `where` names the entry.
Result<PickleTree> parsePickle(std::span<const std::byte> bytes, const std::string& where);

}  // namespace cutaway
