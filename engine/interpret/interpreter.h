#pragma once
// interpret() node by node, for whoever runs several graphs side by side or computes some nodes in a way of their own.
#include <map>
#include <memory>
#include <set>

#include "engine/interpret/interpret.h"

namespace cutaway {

/// The values in the layout of the type, which views of it rely on; as they are where the type's elements overlap or
/// are mostly gaps.
Tensor laidOutAs(const Tensor& values, const TensorType& type);

/// Whether a call of the graph writes to memory.
bool writesToMemory(const Graph& graph);

class Interpreter : public ValueSource {
  public:
    /// `editable`: the same module when its types hold symbols that only the run makes known, else null. All of them
    /// must outlive the run. The options' callbacks may read the operands of their node (valueOf) until they return.
    Interpreter(const Module& module, Module* editable, const InterpretOptions& options);

    const TensorList& valueOf(const Node& node) const override { return m_values[index(node.id())]; }
    /// Keeps a node's value for `times` more readers, each of which says release() when it has read.
    void keep(const Node& node, int times = 1) { m_readsLeft[index(node.id())] += times; }
    void release(const Node& node) {
        if (--m_readsLeft[index(node.id())] == 0) m_values[index(node.id())].clear();
    }

    /// Holds an equal tensor in place of a node's value, so that one memory serves both.
    void exchange(const Node& node, const Tensor& equal) { m_values[index(node.id())] = {equal}; }

    /// Nobody will run the output: what it alone reads is dropped like anything else. Before the first advance().
    void dropResults();

    /// Begins a run: one tensor per placeholder. Then advance() runs next(), until that is null; results() are what
    /// the graph returns.
    void begin(const std::vector<Tensor>& inputs);
    Node* next() const { return m_next; }
    Result<void> advance();
    std::vector<Tensor>& results() { return m_results; }
    /// begin(), and advance() to the end.
    Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);

    /// Calls visit(tensor, written, node) for every value that is held, to exchange it for an equal one elsewhere in
    /// memory; `written`: the graph writes to it.
    template <class Visit>
    void forEachHeld(Visit&& visit) {
        for (size_t id = 0; id < m_values.size(); ++id)
            for (Tensor& value : m_values[id])
                if (value.defined()) visit(value, m_mutates && m_written[id], static_cast<NodeId>(id));
    }

    const Module& module() const { return m_module; }
    /// Whether the graph writes to the node's value, or to something that shares its memory.
    bool writesTo(const Node& node) const { return m_mutates && m_written[index(node.id())]; }

  protected:
    /// The value of a call.
    virtual Result<TensorList> compute(const Node& node);
    /// For subclasses: the tensor that the run holds in place of what it is given for a placeholder or an attribute.
    virtual Tensor given(const Node& node, Tensor value) {
        static_cast<void>(node);
        return value;
    }
    virtual Result<Tensor> attribute(const Node& node) { return attributeOf(m_module, node); }
    const InterpretOptions& options() const { return m_options; }

  private:
    Tensor ownIfWritten(const Node& node, const Tensor& tensor);
    Tensor ownCopy(const Tensor& tensor);
    void protectGiven(const Node& node);
    Result<void> evaluate(const Node& node);
    Result<void> evaluateFaulty(const Node& node);
    Result<void> checkOperands(const Node& node) const;
    Result<void> learnSymbols(const Node& node);
    void releaseOperands(const Node& node);
    Result<std::vector<Tensor>> outputs(const Graph& graph);

    const Module& m_module;
    Module* m_editable;
    const InterpretOptions& m_options;
    bool m_faults;  // faults are asked for (fault_points.h)
    Node* m_next = nullptr;
    bool m_mutates = false;
    std::vector<Tensor> m_inputs, m_results;
    size_t m_nextInput = 0;
    std::vector<TensorList> m_values;
    std::vector<int> m_readsLeft;
    /// Copies, by their originals. Never iterated. Holds the originals, too: one that was made up for a constant has no
    /// other owner, and once it was gone another storage could get its address.
    std::map<std::shared_ptr<Storage>, std::shared_ptr<Storage>> m_copies;
    std::vector<bool> m_written;                   // by id; empty if nothing is
    std::set<const Storage*> m_given;              // what was given and is not copied
    std::set<std::shared_ptr<Storage>> m_changed;  // of what was given: those that are written to
};

}  // namespace cutaway
