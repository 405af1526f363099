#pragma once
// A graph in f64: every float dtype raised, those that casts name too, as PyTorch's fp64 reference does it.
#include <set>

#include "engine/interpret/interpreter.h"

namespace cutaway {

/// F64 for floats, C128 for complex numbers, all others themselves.
DType raised(DType dtype);

struct RaisedGraph {
    std::shared_ptr<Module> module;  // of the same nodes under the same ids
    /// Calls that f64 would change or that do not know it: they take and give their own dtypes.
    std::set<NodeId> own;
};
/// `module`: ready to run.
RaisedGraph raiseDtypes(const Module& module);

/// Runs a raised graph. Weights and inputs are raised when they are read, each time, so that no second copy of them
/// is held.
class RaisedInterpreter : public Interpreter {
  public:
    /// `plain`: the graph that was raised. All must outlive the run.
    RaisedInterpreter(const Module& plain, RaisedGraph& raised, Module* editable, const InterpretOptions& options)
        : Interpreter(*raised.module, editable, options), m_plain(plain), m_own(raised.own) {}
    const TensorList& valueOf(const Node& node) const override;
    /// Names of the operators that took their own dtypes.
    const std::set<std::string>& ownDtypes() const { return m_ops; }

  protected:
    Result<TensorList> compute(const Node& node) override;
    Tensor given(const Node& node, Tensor value) override;
    /// From the plain graph, so that a synthetic weight, too, has the numbers that it has in its own dtype.
    Result<Tensor> attribute(const Node& node) override {
        return attributeOf(m_plain, *m_plain.graph().find(node.id()));
    }
    /// Operands as the running call reads them, in place of the values that are held; dropped after the call.
    TensorList& readInPlace(const Node& node) const { return m_read[node.id()]; }

  private:
    Result<TensorList> computeAsWritten(const Node& node);

    const Module& m_plain;
    std::set<NodeId> m_own;
    std::set<std::string> m_ops;
    mutable std::map<NodeId, TensorList> m_read;  // of the call that runs: operands that are held in their own dtypes
};

}  // namespace cutaway
