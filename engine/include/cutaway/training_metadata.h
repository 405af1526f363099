#pragma once
// What a training run's graphs say about inputs, results and saved values beside their types: PyTorch's
// ViewAndMutationMeta, under its names.
#include "cutaway/session.h"

namespace cutaway {

struct TrainingMetadata {
    struct Input {
        std::string name;
        bool isStatic = false;  // a parameter or buffer: the same memory in every run
        bool requiresGrad = false, hasGradient = false;
        bool mutatesData = false;
        std::string mutationType = "NOT_MUTATED";  // MUTATED_IN_GRAPH: a copy_ at the end of the forward;
                                                   // MUTATED_OUT_GRAPH: returned, and copied by whoever runs it
    };
    struct Output {
        std::string name, type;
        std::string outputType;              // "non_alias", "alias_of_input", "is_input", "unsafe_view_alias"
        int baseIdx = -1;                    // the input whose memory it shares
        std::vector<std::string> viewChain;  // calls that lead from there to it
        std::vector<int> dynamicDims;        // whose sizes are not numbers
        bool requiresGrad = false;
        int tangent = -1;  // its number among the traced tangents; -1: its gradient goes to the input, or nowhere
    };
    std::vector<Input> inputs;
    std::vector<Output> outputs;              // of the program
    std::vector<std::string> tracedTangents;  // "f32[2, 3]"
    int mutatedRuntimeInputs = 0, forwardReturns = 0;
    int savedSymints = 0, savedTensors = 0;
    std::vector<int> donated;  // saved values that nobody else holds, by place among what is saved
    std::vector<std::pair<int, std::vector<int>>> dynamicSaved;  // saved tensors with such sizes, and those dims
};

/// Errors: the run is not split into forward and backward.
Result<TrainingMetadata> trainingMetadata(Session& session, RunId run);

}  // namespace cutaway
