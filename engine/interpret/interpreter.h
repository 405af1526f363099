#pragma once
// interpret() node by node, for whoever runs several graphs side by side or computes some nodes in a way of their own.
#include <map>
#include <memory>

#include "engine/interpret/interpret.h"

namespace cutaway {

class Interpreter : public ValueSource {
  public:
    /// `editable`: the same module when its types hold symbols that only the run makes known, else null. All of them
    /// must outlive the run. What is called with a node may read its operands until it returns.
    Interpreter(const Module& module, Module* editable, const InterpretOptions& options);

    const TensorList& valueOf(const Node& node) const override { return m_values[index(node.id())]; }
    /// Keeps a node's value for `times` more readers, each of which says release() when it has read.
    void keep(const Node& node, int times = 1) { m_readsLeft[index(node.id())] += times; }
    void release(const Node& node) {
        if (--m_readsLeft[index(node.id())] == 0) m_values[index(node.id())].clear();
    }

    /// Begins a run: one tensor per placeholder. Then advance() runs next(), until that is null; results() are what
    /// the graph returns.
    void begin(const std::vector<Tensor>& inputs);
    Node* next() const { return m_next; }
    Result<void> advance();
    std::vector<Tensor>& results() { return m_results; }
    /// begin(), and advance() to the end.
    Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);

    /// Every value that is held, to exchange tensors for equal ones elsewhere in memory.
    template <class Visit>
    void forEachHeld(Visit&& visit) {
        for (TensorList& values : m_values)
            for (Tensor& value : values)
                if (value.defined()) visit(value);
    }

    const Module& module() const { return m_module; }
    /// Whether the graph writes to values.
    bool mutates() const { return m_mutates; }

  protected:
    /// The value of a call.
    virtual Result<TensorList> compute(const Node& node);
    /// What the run is given for a placeholder or an attribute, as the run has it.
    virtual Tensor given(const Node& node, Tensor value) {
        static_cast<void>(node);
        return value;
    }
    virtual Result<Tensor> attribute(const Node& node) { return attributeOf(m_module, node); }
    const InterpretOptions& options() const { return m_options; }

  private:
    Tensor ownCopy(const Tensor& tensor);
    Result<void> evaluate(const Node& node);
    Result<void> evaluateFaulty(const Node& node);
    Result<void> checkOperands(const Node& node) const;
    Result<void> learnSymbols(const Node& node);
    void releaseOperands(const Node& node);
    Result<std::vector<Tensor>> outputs(const Graph& graph);

    const Module& m_module;
    Module* m_editable;
    const InterpretOptions& m_options;
    bool m_faults;  // on demand
    Node* m_next = nullptr;
    bool m_mutates = false;
    std::vector<Tensor> m_inputs, m_results;
    size_t m_nextInput = 0;
    std::vector<TensorList> m_values;
    std::vector<int> m_readsLeft;
    /// Never iterated. Holds what was copied, too, since what is made up for a constant has no other owner, and its
    /// address would come again.
    std::map<std::shared_ptr<Storage>, std::shared_ptr<Storage>> m_copies;
};

}  // namespace cutaway
