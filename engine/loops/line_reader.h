#pragma once
// One line of the text of a kernel or a nest, expression by expression (expr_writer.h writes them).
#include <map>

#include "engine/loops/kernel_syntax.h"
#include "engine/loops/loop_nest.h"

namespace cutaway {

/// What names in a line stand for.
struct TextNames {
    std::vector<KernelBuffer> buffers;
    std::vector<std::string> sizes;
    std::map<int, Expr> values;  // v0, v1, ...
    bool nest = false;           // then also:
    std::vector<Scratch> scratch;
    std::map<int, NestVar> vars;

    std::optional<DType> memoryOf(int buffer) const;
};

/// Reads a line from left to right. The first error stays in `error`; results after it have no meaning.
class LineReader {
  public:
    LineReader(std::string_view line, const TextNames& names) : m_text(line), m_names(&names) {}

    std::string error;

    void skipBlanks();
    bool take(std::string_view symbol);
    bool takeWord(std::string_view expected);
    bool atEnd();
    std::string_view word();
    /// "... expected before '...'".
    void fail(std::string what);
    void say(std::string sentence);
    void expect(std::string_view symbol);

    Expr expression() { return comparison().built(); }
    /// An expression without comparisons outside of brackets, as in the bounds of loops.
    Expr bound() { return bits().built(); }
    /// "x0 < 9, x1 < s0".
    std::vector<Loop> loops();
    /// A symbol in quotes, its name.
    std::optional<std::string> quoted();
    Expr variable(int number);
    /// Errors if there is no such buffer or scratch array.
    std::optional<DType> memoryOf(int buffer);
    /// "scale(b0: f32!, b1: f32, s0)".
    void header(std::string& name, TextNames& names);

  private:
    /// What has been read of an operand. A literal without a dtype takes it from what it is combined with; an operation
    /// is built only when it is known whether a dtype suffix follows its closing bracket.
    struct Term {
        Expr expr;
        bool plain = false;
        struct Operation {
            ExprKind kind;
            std::string function;
            std::vector<Expr> operands;
            DType dtype;
            bool asWritten;  // not simplified: what lowering has left in a nest is not
        };
        std::optional<Operation> operation = std::nullopt;

        DType dtype() const { return operation ? operation->dtype : expr->dtype; }
        Expr built() const;
    };

    Term nothing() { return {Expr::integer(0), false}; }
    Term wrong(std::string what);
    std::optional<DType> takeSuffix();
    /// The operation, with the literals among its operands in their dtype.
    Term operation(ExprKind kind, std::string_view function, const std::vector<Term>& terms);
    Term pair(ExprKind kind, const Term& a, const Term& b) { return operation(kind, {}, {a, b}); }
    const InfixSpelling* takeInfix(Strength strength);
    Term comparison();
    Term bits();
    Term sum();
    Term product();
    Term fromTheLeft(const std::vector<Term>& terms, const std::vector<ExprKind>& kinds);
    Term unary();
    Term number();
    Term literal(const Expr& e);
    Term bracket();
    Term atom();
    Term named();
    Expr symbol(const std::string& name, std::optional<DType> dtype);
    Term load(int buffer);
    Term call(std::string_view function);
    Term typed(Term call);
    /// A NaN by its bits.
    Term nanOf();
    Term reduction(int number);
    static bool allIndices(const std::vector<Term>& terms);

    std::string_view m_text;
    const TextNames* m_names;
    size_t m_at = 0;
    int m_depth = 0, m_operations = 0;
};

}  // namespace cutaway
