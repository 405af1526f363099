#pragma once
// The values of one function of a host program while it runs: where each lies on the program's device, what has been
// found of its sizes, and copies for what the host computes.
#include "engine/ops/eval.h"
#include "engine/runtime/cpu/loaded_program.h"

namespace cutaway {

class HostValues final : public ValueSource {
  public:
    HostValues(const std::shared_ptr<LoadedProgram>& program, size_t function, bool apart);

    /// Memory for inputs of these sizes, and their contents; with `all` false only of those that the last run has
    /// written to.
    Result<void> setInputs(const std::vector<Tensor>& inputs, bool all);
    /// Lets go of inputs that stayed in the caller's memory.
    void forgetInputs();
    /// Memory for the segment's values.
    Result<void> enter(size_t segment, const SymbolValues& sizes);
    /// Changes whenever a step's memory may be another one than before.
    uint64_t places() const { return m_places; }

    const PreparedSegment& prepared() const { return *m_prepared[m_segment]; }
    const std::shared_ptr<const PreparedSegment>& preparedShared() const { return m_prepared[m_segment]; }
    const BoundFunction& bound() const { return m_prepared[m_segment]->bound; }
    /// A value of this segment or an earlier one.
    const Tensor& value(int64_t number);
    /// Addresses of the buffers of a kernel's step.
    void* const* buffersOf(size_t step);
    /// True for what a step returned in memory of its own, and views of it: it may lie elsewhere in the next run.
    bool moves(int64_t number) const;
    /// Scratch memory of a library's call.
    void* scratchOf(const PreparedSegment::Call& planned) const;

    /// What a call on the host reads is copied there, until the next one; valueOf has it.
    Result<void> bring(const HostStep& step);
    const TensorList& valueOf(const Node& node) const override;
    /// What a call on the host has written to of its operands, back to where they lie.
    Result<void> writeBack(const HostStep& step, const Op& op);
    /// Takes what a call on the host has returned as the value of that number.
    Result<void> adopt(const HostStep& step, int64_t number, Tensor tensor);
    /// For tests that spoil a result.
    Tensor& result(int64_t number) { return m_values[static_cast<size_t>(number)][0]; }

    /// Of the latest run, in the host's memory. `inPlace`: where they lie if they lie there.
    Result<std::vector<Tensor>> outputs(bool inPlace, const SymbolValues& sizes);
    Result<std::vector<std::pair<size_t, Tensor>>> writtenInputs();
    std::vector<std::pair<size_t, std::string>> refused() const;
    void keepOnly(const std::vector<Tensor>& kept);
    int64_t memoryBytes() const;

  private:
    /// What a step is run with, found once for all runs of these sizes.
    struct Step {
        std::vector<void*> pointers;  // of a kernel's buffers
        bool located = false;         // `pointers` are right
        bool moving = false;          // a buffer's memory is another one in every run
    };
    DeviceMemory& device() const { return m_program->device(); }
    Result<Tensor> handedOut(const Tensor& tensor, bool inPlace) const;
    bool staysWhereItIs(const HostValue& value, const Tensor& input) const;
    Result<Tensor> memoryFor(const Tensor& like) const;
    void forgetPlaces(size_t firstSegment);

    std::shared_ptr<LoadedProgram> m_program;
    size_t m_number;
    const HostFunction* m_function;
    bool m_apart;
    std::vector<TensorList> m_values;
    std::map<int64_t, TensorList> m_brought;  // by value; of the call on the host that runs
    std::vector<Step> m_steps;
    size_t m_segment = 0;  // the one that runs
    uint64_t m_places = 0;
    std::vector<std::shared_ptr<const PreparedSegment>> m_prepared;
    std::vector<std::shared_ptr<Storage>> m_arenas;
    std::shared_ptr<Storage> m_scratch;  // apart from the values, if these lie apart
};

}  // namespace cutaway
