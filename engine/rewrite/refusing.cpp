#include "engine/rewrite/refusing.h"

#include <cstdio>

#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

std::string quoted(const Node& node) { return "`" + node.name() + "`"; }

std::string found(const Node* node) { return node ? quoted(*node) + " (" + kindText(*node) + ")" : "no tensor"; }

std::string otherReader(const Node& node, const Node* but) {
    for (const Node* user : node.users()) {
        if (user == but) continue;
        if (user->isOutput()) return quoted(node) + " is an output" + (but ? ", too" : "");
        return quoted(*user) + " reads " + quoted(node) + (but ? " too" : "");
    }
    return quoted(node) + (but && node.hasUsers() ? " is read twice by " + quoted(*but) : " has no reader");
}

}  // namespace

std::string kindText(const Node& node) {
    switch (node.kind()) {
        case NodeKind::Placeholder: return "an input";
        case NodeKind::GetAttr: return "a tensor of the module";
        case NodeKind::Output: return "the output";
        case NodeKind::Call: break;
    }
    return (node.op().style() == Op::Style::Method ? "the method " : "") + node.op().name();
}

void SentencePiece::appendTo(std::string& out) const {
    switch (m_kind) {
        case Kind::Text: out += m_text; break;
        case Kind::Name: out += quoted(*m_node); break;
        case Kind::NodeWithKind: out += found(m_node); break;
        case Kind::KindOf: out += kindText(*m_node); break;
        case Kind::OtherReader: out += otherReader(*m_node, m_but); break;
        case Kind::Counted:
            out += std::to_string(m_number) + " " + std::string(m_text) + (m_number == 1 ? "" : "s");
            break;
        case Kind::Argument: out += constantText(*m_argument); break;
        case Kind::Type: out += m_type->text(); break;
        case Kind::ValueType: out += m_valueType->text(); break;
        case Kind::Size: out += m_size->text(); break;
        case Kind::Device: out += m_device->text(); break;
        case Kind::Number: out += std::to_string(m_number); break;
        case Kind::Real: {
            char digits[32];
            std::snprintf(digits, sizeof digits, "%.3g", m_real);
            out += digits;
            break;
        }
    }
}

bool Refusing::say(std::initializer_list<SentencePiece> pieces, const Node* because) const {
    std::string sentence;
    for (const SentencePiece& piece : pieces) {
        piece.appendTo(sentence);
        if (because == nullptr && piece.node() != m_node) because = piece.node();
    }
    return m_rewriter->refuse(m_rule, *m_node, sentence, because);
}

}  // namespace cutaway
