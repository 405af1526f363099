#pragma once
// FX text as a tree: functions, statements and expressions as they are written. Knows the grammar (spec:
// input-formats §4.1) but no operator, name or type; function_builder.cpp gives it meaning.
#include <memory>
#include <optional>

#include "cutaway/result.h"
#include "engine/text/lexer.h"

namespace cutaway::fxtext {

enum class SyntaxKind : uint8_t {
    Name,  // dotted names too; None, True, False and Ellipsis are names here
    Integer,
    Float,
    Imaginary,
    String,
    Tuple,
    List,
    Dict,       // Dict: key, value, key, value, ...
    Call,       // callee, arguments
    Keyword,    // name = value, inside a call
    Subscript,  // object, index
    Slice,      // start, stop, step (Empty where left out)
    Attribute,  // object; text is the name: getattr(self, "0").weight
    Binary,
    Unary,
    Empty,
};

using SyntaxId = int32_t;
constexpr SyntaxId kNoSyntax = -1;

struct SyntaxNode {
    SyntaxKind kind = SyntaxKind::Empty;
    uint16_t height = 0;          // of the tree below it
    uint32_t symbol = 0;          // Binary, Unary
    SyntaxId first = kNoSyntax;   // first child
    SyntaxId next = kNoSyntax;    // next sibling
    uint32_t begin = 0, end = 0;  // place in the text
    std::string_view text;
    std::string_view comment;  // after an item of the expanded form
};

enum class StatementKind : uint8_t {
    Assign,     // target [: annotation] = value
    Unpack,     // names (children of `names`) = value
    Augmented,  // target symbol value
    SetItem,    // target[index] = value
    Return,
    Declare,  // target: annotation
    Free,     // names = None
    Expression,
    Comment,  // on a line of its own
};

struct Statement {
    StatementKind kind = StatementKind::Expression;
    uint32_t symbol = 0;
    uint32_t begin = 0;
    std::string_view target;
    std::string_view comment;  // after the statement, or the comment itself
    SyntaxId annotation = kNoSyntax, value = kNoSyntax, index = kNoSyntax;
    SyntaxId names = kNoSyntax;  // first of a chain of Name nodes
};

struct Parameter {
    std::string_view name;
    uint32_t begin = 0;
    int stars = 0;
    SyntaxId annotation = kNoSyntax, fallback = kNoSyntax;
    std::string_view comment;
};

struct FunctionSyntax {
    std::string_view name;  // "forward" or the subgraph's name; in class form the class's
    uint32_t begin = 0;
    bool classForm = false;
    std::vector<Parameter> parameters;
    std::vector<Statement> statements;
    std::vector<std::unique_ptr<FunctionSyntax>> children;
};

struct SyntaxTree {
    PlainText source;
    std::vector<SyntaxNode> nodes;
    std::unique_ptr<FunctionSyntax> root;
    std::vector<std::string_view> headComments;  // before a short-form root
    size_t end = 0;                              // where the graph's text ends

    const SyntaxNode& at(SyntaxId id) const { return nodes[static_cast<size_t>(id)]; }
};

/// The first class with a forward function, or the first function, of the text. Errors: "line:column" in `where`, the
/// offending text in the message. Nesting deeper than 256 and texts over 256 MiB are refused.
Result<std::unique_ptr<SyntaxTree>> parseSyntax(std::string_view text);

/// An error at an offset of the plain text, with the line it is on.
Error syntaxError(const PlainText& source, size_t offset, std::string what);

}  // namespace cutaway::fxtext
