#pragma once
// Turns the syntax of one function into its graph and subgraphs, statement by statement. ValueReader reads values;
// function_types.cpp finds the types of calls.
#include "engine/ops/build.h"
#include "engine/text/annotation.h"
#include "engine/text/parse_value.h"
#include "engine/text/provenance_text.h"

namespace cutaway::fxtext {

/// Builds the graph of one function, and its subgraphs.
class FunctionBuilder {
  public:
    FunctionBuilder(ParseState& state, const FunctionSyntax& function)
        : m_state(state), m_function(function), m_values(state, m_scope) {
        m_module = std::make_unique<Module>();
        m_scope.module = m_module.get();
        m_scope.subgraphs = &function.children;
        m_scope.names.reserve(function.statements.size() + function.parameters.size());
    }

    std::unique_ptr<Module> build();

  private:
    // -- inputs
    void findConvention();
    void parameters();
    void placeholder(std::string_view raw, int stars, SyntaxId annotation, std::string_view comment, uint32_t begin);
    void flattenedInputs(const Statement& statement);
    // -- statements
    void statement(const Statement& statement);
    void assign(const Statement& statement);
    void assignName(const Statement& statement, const SyntaxNode& value);
    void assignAttribute(const Statement& statement, const std::string& path);
    void assignCall(const Statement& statement);
    void inplace(const Statement& statement);
    void free(const Statement& statement);
    void finish(const Statement& statement);
    // -- nodes
    void call(const Statement& statement, const Op& op, std::vector<Argument> positional, NamedArguments keywords = {});
    void addCall(const Statement& statement, const Op& op, std::vector<Argument> args, NamedArguments keywords);
    void define(std::string_view name, Node& node, uint32_t begin);
    /// Gives the node what the comments above its statement say, and its name in the text.
    void setProvenance(Node& node, std::string_view name);
    std::string nameFor(std::string_view wanted, uint32_t begin);
    // -- types
    Annotation annotationOf(SyntaxId id, std::string_view name);
    ValueType callType(const Statement& statement, const Op& op, const std::vector<Argument>& args,
                       const NamedArguments& keywords);
    ValueType torchType(const Statement& statement, const Op& op, const std::vector<Argument>& args,
                        const NamedArguments& keywords);
    /// A size symbol that the text does not name.
    Expr newSymbol(DType dtype);
    bool findStrides(const std::vector<Argument>& viewArgs);
    ValueType merged(const Statement& statement, Annotation written, ValueType inferred);
    void refineTuples();
    void buildSubgraphs();

    ParseState& m_state;
    const FunctionSyntax& m_function;
    std::unique_ptr<Module> m_module;
    Scope m_scope;
    ValueReader m_values;
    CommentState m_comment;
    std::unordered_map<std::string_view, const Statement*> m_declared;  // types given apart, in the tree form
    Annotation m_written;                                               // of the statement at hand
    std::string_view m_boxedList, m_boxedIterator;
    bool m_flattened = false, m_joint = false, m_finished = false, m_skipNext = false;
};

}  // namespace cutaway::fxtext
