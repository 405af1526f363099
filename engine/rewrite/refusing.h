#pragma once
// Sentences that say why a rule leaves a node alone, composed only when somebody asks:
//
//     const Refusing no(rewriter, "merge_splits_pass", inner);
//     if (outer.dim != dim) return no("it splits dim ", dim, ", ", *outer.node, " dim ", outer.dim);
//
// Node names come in backquotes.
#include <initializer_list>
#include <string>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// What a node is: "aten.relu.default", "the method permute", "an input".
std::string kindText(const Node& node);

/// The same as a piece.
struct KindOf {
    const Node& node;
};
/// A node with what it is: "`x` (aten.relu.default)", "`x` (an input)"; "no tensor" for null.
struct NodeWithKind {
    const Node* node;
};
/// Who reads the node: "`y` reads `x`", "`x` is an output"; other than `but`: "`y` reads `x` too".
struct OtherReader {
    const Node& node;
    const Node* but = nullptr;
};

/// How many there are: "1 reader", "2 readers".
struct Counted {
    size_t count;
    std::string_view noun;
};

/// One piece of a sentence. Borrows; text is made of it only when somebody asks.
class SentencePiece {
  public:
    SentencePiece(std::string_view text) : m_kind(Kind::Text), m_text(text) {}
    SentencePiece(const char* text) : SentencePiece(std::string_view(text)) {}
    SentencePiece(const std::string& text) : SentencePiece(std::string_view(text)) {}
    SentencePiece(const Node& node) : m_kind(Kind::Name), m_node(&node) {}
    SentencePiece(const Node* node) : SentencePiece(*node) {}  // not null
    SentencePiece(NodeWithKind found) : m_kind(Kind::NodeWithKind), m_node(found.node) {}
    SentencePiece(KindOf kind) : m_kind(Kind::KindOf), m_node(&kind.node) {}
    SentencePiece(OtherReader reader) : m_kind(Kind::OtherReader), m_node(&reader.node), m_but(reader.but) {}
    SentencePiece(Counted things)
        : m_kind(Kind::Counted), m_text(things.noun), m_number(static_cast<int64_t>(things.count)) {}
    SentencePiece(const Argument& argument) : m_kind(Kind::Argument), m_argument(&argument) {}
    SentencePiece(const TensorType& type) : m_kind(Kind::Type), m_type(&type) {}
    SentencePiece(const ValueType& type) : m_kind(Kind::ValueType), m_valueType(&type) {}
    SentencePiece(const SymInt& size) : m_kind(Kind::Size), m_size(&size) {}
    SentencePiece(const Device& device) : m_kind(Kind::Device), m_device(&device) {}
    SentencePiece(int number) : m_kind(Kind::Number), m_number(number) {}
    SentencePiece(int64_t number) : m_kind(Kind::Number), m_number(number) {}
    SentencePiece(size_t number) : m_kind(Kind::Number), m_number(static_cast<int64_t>(number)) {}
    SentencePiece(double number) : m_kind(Kind::Real), m_real(number) {}  // three digits
    void appendTo(std::string& out) const;
    /// The node that the piece names; null if it names none.
    const Node* node() const { return m_node; }

  private:
    enum class Kind : uint8_t {
        Text,
        Name,
        NodeWithKind,
        KindOf,
        OtherReader,
        Counted,
        Argument,
        Type,
        ValueType,
        Size,
        Device,
        Number,
        Real
    };
    Kind m_kind;
    std::string_view m_text;
    const Node* m_node = nullptr;
    const Node* m_but = nullptr;
    const Argument* m_argument = nullptr;
    const TensorType* m_type = nullptr;
    const ValueType* m_valueType = nullptr;
    const SymInt* m_size = nullptr;
    const Device* m_device = nullptr;
    int64_t m_number = 0;
    double m_real = 0;
};

/// Rewriter::refuse for one rule at one node.
class Refusing {
  public:
    Refusing() = default;  // nobody asks
    Refusing(Rewriter& rewriter, std::string_view rule, const Node& node)
        : m_rewriter(&rewriter), m_rule(rule), m_node(&node) {}
    /// Always false, so that a check ends with it. The sentence is about the first other node in it.
    template <class... Pieces>
    bool operator()(const Pieces&... pieces) const {
        return watched() && say({SentencePiece(pieces)...}, nullptr);
    }
    /// The same with the node that the sentence is about.
    template <class... Pieces>
    bool about(const Node* because, const Pieces&... pieces) const {
        return watched() && say({SentencePiece(pieces)...}, because);
    }
    /// Whether somebody asks, for sentences whose pieces take a search.
    bool watched() const { return m_rewriter && m_rewriter->watches(*m_node); }

  private:
    bool say(std::initializer_list<SentencePiece> pieces, const Node* because) const;
    Rewriter* m_rewriter = nullptr;
    std::string_view m_rule;
    const Node* m_node = nullptr;
};

}  // namespace cutaway
