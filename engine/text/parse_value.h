#pragma once
// Values of FX text (spec: input-formats §4.4): from syntax to Argument, in the scope of one function. Leaves alone:
// statements and operators, which are function_builder.cpp's.
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ir/module.h"
#include "engine/ops/op_registry.h"
#include "engine/text/parse.h"
#include "engine/text/syntax.h"

namespace cutaway::fxtext {

/// State that all functions of one text share.
struct ParseState {
    const SyntaxTree& tree;
    const ParseOptions& options;
    std::unordered_map<std::string_view, const Op*> ops;  // by name as written
    std::set<std::string> symbols;                        // of sizes, from annotations
    bool allSymbols = false;                              // those of annotations below, too
    std::vector<std::string> remarks;
    std::optional<Error> error;  // the first; after it nothing that was read counts
    uint32_t nextId = 0;
    /// Of inputs whose text says none, by name, as their readers need them.
    std::map<std::string, SymDims, std::less<>> strides;
    bool again = false;  // `strides` has grown: what was read before holds other types

    const SyntaxNode& at(SyntaxId id) const { return tree.at(id); }
    void fail(size_t offset, std::string what);
    void fail(size_t offset, const Error& inner);
    void remark(size_t offset, std::string what);
    /// The operator of a dotted name as written, "torch.ops." or not; opaque when it has no row.
    const Op& op(std::string_view name);
};

/// What a name stands for: a value, or a subgraph of the module.
struct Binding {
    Node* node = nullptr;
    std::string_view subgraph;
    uint32_t lastUse = 0;       // number of the statement
    bool rawParameter = false;  // a placeholder that `name = raw` may still rename (TXT-2)
    bool freed = false;
};

struct Scope {
    Module* module = nullptr;
    std::unordered_map<std::string_view, Binding> names;
    const std::vector<std::unique_ptr<FunctionSyntax>>* subgraphs = nullptr;
    uint32_t statement = 0;

    Graph& graph() const { return module->graph(); }
    /// The name of the subgraph, in storage that outlives the scope; empty if there is none.
    std::string_view findSubgraph(std::string_view name) const;
};

class ValueReader {
  public:
    ValueReader(ParseState& state, Scope& scope) : m_state(state), m_scope(scope) {}

    /// After an error (state.error) the result means nothing.
    Argument read(SyntaxId id);
    /// Positional arguments and keywords of a Call node.
    void readArguments(SyntaxId call, std::vector<Argument>& positional,
                       std::vector<std::pair<std::string, Argument>>& keywords);
    /// "a.b" of self.a.b or getattr(self.a, "b"); nullopt for other things.
    std::optional<std::string> attributePath(SyntaxId id) const;
    /// The value of an attribute: a subgraph, or a GetAttr node made for it.
    Argument attribute(const std::string& path, const SyntaxNode& at);
    /// The binding of a plain name, marked as used; null if there is none.
    Binding* use(std::string_view name, const SyntaxNode& at);

  private:
    Argument readName(const SyntaxNode& node);
    Argument readDotted(const SyntaxNode& node);
    Argument readInteger(const SyntaxNode& node, bool negative);
    Argument readCall(SyntaxId id);
    Argument readDevice(const SyntaxNode& call);
    Argument readUnary(SyntaxId id);
    Argument readBinary(SyntaxId id);
    Argument readSymbolic(const SyntaxNode& node);
    ArgumentList readItems(SyntaxId first, bool tuple);
    Argument readSlice(SyntaxId first);
    Argument readDict(const SyntaxNode& node);

    ParseState& m_state;
    Scope& m_scope;
};

/// "x" but not "x.y".
inline bool isPlainName(const SyntaxNode& node) {
    return node.kind == SyntaxKind::Name && (node.text.find('.') == std::string_view::npos || node.text == "...");
}

}  // namespace cutaway::fxtext
