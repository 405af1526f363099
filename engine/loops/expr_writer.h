#pragma once
// Expressions of kernels and nests as text; line_reader.h reads them back. A literal has the dtype of what it is
// combined with where that fits, an operation that of its operands, a load that of its memory: what has another says so
// behind it.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "engine/loops/kernel_syntax.h"
#include "engine/loops/unique_exprs.h"

namespace cutaway {

class ExprWriter {
  public:
    /// `memory` is the dtype of what a load reads from.
    explicit ExprWriter(std::function<DType(const Expr& load)> memory) : m_memory(std::move(memory)) {}

    /// The one node that stands for all equal expressions. All functions below expect expressions from here.
    Expr unique(const Expr& expr) { return m_exprs.unique(expr); }
    /// Gives names to what these read more than once and to parts of what is longer than a line.
    void chooseNames(const std::vector<Expr>& roots);
    /// Lines "v0 = ..." that must stand before whatever reads these.
    std::vector<std::string> definitions(const std::vector<Expr>& roots);
    /// The text of `e`, in brackets if it binds weaker than `strength`. `context`: dtype of literals without a suffix.
    std::string shown(const Expr& e, int strength = 0, std::optional<DType> context = std::nullopt);
    /// "x0 < 9, x1 < s0".
    std::string loops(const std::vector<Loop>& all);

  private:
    std::string called(std::string_view name, const Expr& e);
    std::string reduction(const Expr& e);
    std::string infix(const Expr& e, const InfixSpelling& spelling, std::optional<DType> context);
    std::string operation(const Expr& e, int strength);

    std::function<DType(const Expr&)> m_memory;
    UniqueExprs m_exprs;
    std::set<const ExprNode*> m_named;
    std::unordered_map<const ExprNode*, std::string> m_names;
};

/// "b0: f32!, b1: i64".
std::string buffersText(const std::vector<KernelBuffer>& buffers);
/// A symbol, in quotes if it would read as something else.
std::string symbolText(const std::string& name);

}  // namespace cutaway
