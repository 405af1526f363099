#include "engine/session/halves.h"

#include <algorithm>

#include "engine/support/check.h"

namespace cutaway {

void keepInputs(const Module& forward, const std::vector<Tensor>& bound, std::vector<Tensor>& outputs) {
    const std::vector<Node*> placeholders = forward.graph().placeholders();
    const std::vector<Argument> returned = forward.graph().outputs();
    for (size_t i = 0; i < returned.size() && i < forward.outputs.size(); ++i) {
        if (forward.outputs[i].kind != OutputSpec::Kind::Saved) continue;
        // Only outputs that saved this input when the graph was split: others are an input's new value by now.
        if (returned[i].node() == nullptr || forward.outputs[i].target != returned[i].node()->name()) continue;
        const auto input = std::find(placeholders.begin(), placeholders.end(), returned[i].node());
        if (input != placeholders.end()) outputs[i] = bound[static_cast<size_t>(input - placeholders.begin())];
    }
}

Tensor laidOut(const Tensor& tensor, const Node& placeholder) {
    const TensorType* type = placeholder.type().tensor();
    if (type == nullptr || !allInts(type->strides) || toInts(type->strides) == tensor.strides()) return tensor;
    return tensor.clone(toInts(type->strides));
}

Result<CpuProgram::Hold> holdHalves(Session::State::Run& run, const std::vector<Tensor>& inputs,
                                    const Progress& progress) {
    CT_TRY(const CpuProgram* program, programOf(run, "forward", &inputs, progress));
    return program->hold();
}

Result<Execution> runCompiledHalves(Session::State::Run& run, const std::vector<Tensor>& inputs,
                                    const RunOptions& options, const Progress& progress) {
    const Snapshot forward = run.trace.resultOf("forward"), backward = run.trace.resultOf("backward");
    const size_t taken = forward->graph().placeholders().size();
    CT_CHECK(inputs.size() >= taken, "the joined graph takes what its forward takes");
    const std::vector<Tensor> bound(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(taken));
    SymbolValues sizes;
    if (!freeSymbols(*forward).empty()) {
        CT_TRY(sizes, solveSymbols(*forward, bound));
    }
    CT_TRY(const CpuProgram::Hold hold, holdHalves(run, bound, progress));
    CT_TRY(Execution ahead, runCompiled(run, "forward", nullptr, bound, options, progress));
    keepInputs(*forward, bound, ahead.outputs);

    CT_TRY(const std::vector<int64_t> saved, savedResults(*forward, *backward));
    const std::vector<Node*> placeholders = backward->graph().placeholders();
    std::vector<Tensor> handed;
    size_t next = taken;
    for (size_t i = 0; i < placeholders.size(); ++i) {
        if (saved[i] < 0) handed.push_back(inputs.at(next++));
        else handed.push_back(laidOut(ahead.outputs.at(static_cast<size_t>(saved[i])), *placeholders[i]));
    }
    CT_TRY(Execution back, runCompiled(run, "backward", nullptr, handed, options, progress, sizes));

    Execution both;
    both.tf32 = ahead.tf32 || back.tf32;
    for (size_t i = 0; i < ahead.outputs.size(); ++i)
        if (i >= forward->outputs.size() || forward->outputs[i].kind != OutputSpec::Kind::Saved)
            both.outputs.push_back(ahead.outputs[i]);
    std::move(back.outputs.begin(), back.outputs.end(), std::back_inserter(both.outputs));
    return both;
}

}  // namespace cutaway
