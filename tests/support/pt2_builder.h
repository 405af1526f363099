#pragma once
// Small .pt2 programs as JSON, from the parts that a test is about.
#include <string>
#include <utility>
#include <vector>

namespace cutaway::testing {

/// All fields are JSON texts; lists without their brackets.
struct Pt2Program {
    std::string inputs, outputs, nodes, tensors, symInts, inputSpecs, outputSpecs, ranges;
    std::string graphExtra;  // ', "is_single_tensor_return": true'
    std::string version = R"("major": 8, "minor": 17)";
    std::string inSpec = "null";
    std::string guards;  // items of "guards_code", with their quotes

    std::string json() const;
};

/// {"as_tensor": {"name": "x"}}
std::string tensorArgument(const std::string& name);
/// A user_input or user_output spec of that tensor.
std::string userInput(const std::string& name);
std::string userOutput(const std::string& name);
/// "x": {…} for tensor_values: float32 unless `dtype` says else, row-major, sizes as JSON items '{"as_int": 2}' or
/// plain numbers.
std::string tensorValue(const std::string& name, const std::vector<std::string>& sizes,
                        const std::vector<std::string>& strides, int dtype = 7);
std::string tensorMeta(const std::vector<std::string>& sizes, const std::vector<std::string>& strides, int dtype = 7,
                       const std::string& offset = "0");
/// A call of one tensor result named `name`; `arguments` are NamedArguments.
std::string call(const std::string& name, const std::string& target, const std::vector<std::string>& arguments,
                 const std::string& metadata = {});
/// {"name": …, "arg": …, "kind": 1}
std::string argument(const std::string& name, const std::string& value, int kind = 1);
/// The program x -> relu(x) on f32[2], as a start for broken ones.
Pt2Program reluProgram();

/// A new-layout archive; further entries are given without the root.
std::string pt2Archive(const std::string& json, const std::vector<std::pair<std::string, std::string>>& entries = {});

/// y = W x, in an archive whose weight has 4 MiB: so large that it is read only when it is used.
std::string largeWeightArchive();

}  // namespace cutaway::testing
