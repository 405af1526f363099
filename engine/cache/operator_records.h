#pragma once
// What PyTorch notes of operators that were compiled one by one (torch/_inductor/aoti_eager.py): for each library the
// call that it was compiled for. Read and written in PyTorch's own form, a JSON list for each operator (spec:
// debug-minify-export §3.1, §3.2, AOT-6, 7, 10, 11).
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/tensor/dtype.h"

namespace cutaway {

struct TensorRecord {
    bool dynamic = false;
    std::string device;        // "cpu"
    int64_t deviceIndex = -1;  // of a CPU -1, whatever a file says
    std::string dtype;         // "torch.float32"
    std::vector<int64_t> sizes, strides;
    bool requiresGrad = false;
    uint64_t keys = 0;  // c10::DispatchKeySet::raw_repr()
};
/// A tensor without anything special: what its dispatch keys are depends on PyTorch's version, and those that are known
/// are taken for equal.
uint64_t plainKeys(DeviceType device);

struct ScalarRecord {
    std::string device;
    int64_t deviceIndex = -1;
    std::variant<bool, int64_t, double> value;
};
struct TextRecord {
    std::string value;
};
struct DTypeRecord {
    std::string name;  // "torch.float32"
};
struct DeviceRecord {
    std::string type;
    std::optional<int64_t> index;
};
struct LayoutRecord {
    std::string name;  // "torch.strided"
};

struct InputRecord {
    int64_t order = 0;  // among the arguments that do not have their default
    std::variant<TensorRecord, std::vector<TensorRecord>, ScalarRecord, TextRecord, DTypeRecord, DeviceRecord,
                 LayoutRecord>
        kind;
    /// "f32[2, 3]", "[f32[2], f32[3]]", "1.5", "torch.float16"
    std::string text() const;
};

struct OperatorRecord {
    std::vector<InputRecord> inputs;
    std::string library;  // relative to the folder of the file
    std::string raw;      // as the file has it; empty: made here
    std::string problem;  // why the inputs are not understood: such a record is kept and matches nothing
};

/// Whether a library that was compiled for `a` computes `b`. As PyTorch compares, but for three cases where its answer
/// would be another operator's: True is not 1, 0.0 is not -0.0, and NaN is NaN.
bool sameInputs(const std::vector<InputRecord>& a, const std::vector<InputRecord>& b);

/// The records of a file. What is damaged drops itself alone, with a remark: of a file that was cut short the records
/// before the cut remain.
std::vector<OperatorRecord> parseOperatorRecords(std::string_view text, const std::string& where,
                                                 std::vector<std::string>& remarks);
std::string operatorRecordsText(const std::vector<OperatorRecord>& records);

}  // namespace cutaway
