#include "tests/support/pt2_builder.h"

#include "tests/support/zip_builder.h"

namespace cutaway::testing {
namespace {
std::string dims(const std::vector<std::string>& items) {
    std::string out = "[";
    for (const std::string& item : items) {
        if (out.size() > 1) out += ", ";
        out += item[0] == '{' ? item : "{\"as_int\": " + item + "}";
    }
    return out + "]";
}
}  // namespace

std::string Pt2Program::json() const {
    return "{\"graph_module\": {\"graph\": {\"inputs\": [" + inputs + "], \"outputs\": [" + outputs +
           "], \"nodes\": [" + nodes + "], \"tensor_values\": {" + tensors + "}, \"sym_int_values\": {" + symInts +
           "}, \"sym_bool_values\": {}" + graphExtra + "}, \"signature\": {\"input_specs\": [" + inputSpecs +
           "], \"output_specs\": [" + outputSpecs +
           "]}, \"module_call_graph\": [{\"fqn\": \"\", \"signature\": {\"inputs\": [], \"outputs\": [], \"in_spec\": " +
           inSpec + "}}]}, \"guards_code\": [" + guards +
           "], \"opset_version\": {\"aten\": 10}, \"range_constraints\": {" + ranges + "}, \"schema_version\": {" +
           version + "}, \"verifiers\": [\"ATEN\"], \"torch_version\": \"2.11.0\"}";
}
std::string tensorArgument(const std::string& name) { return "{\"as_tensor\": {\"name\": \"" + name + "\"}}"; }
std::string userInput(const std::string& name) { return "{\"user_input\": {\"arg\": " + tensorArgument(name) + "}}"; }
std::string userOutput(const std::string& name) { return "{\"user_output\": {\"arg\": " + tensorArgument(name) + "}}"; }
std::string tensorMeta(const std::vector<std::string>& sizes, const std::vector<std::string>& strides, int dtype,
                       const std::string& offset) {
    return "{\"dtype\": " + std::to_string(dtype) + ", \"sizes\": " + dims(sizes) + ", \"strides\": " + dims(strides) +
           ", \"requires_grad\": false, \"device\": {\"type\": \"cpu\", \"index\": null}, \"storage_offset\": {\"as_int\": " +
           offset + "}, \"layout\": 7}";
}
std::string tensorValue(const std::string& name, const std::vector<std::string>& sizes,
                        const std::vector<std::string>& strides, int dtype) {
    return "\"" + name + "\": " + tensorMeta(sizes, strides, dtype);
}
std::string argument(const std::string& name, const std::string& value, int kind) {
    return "{\"name\": \"" + name + "\", \"arg\": " + value + ", \"kind\": " + std::to_string(kind) + "}";
}
std::string call(const std::string& name, const std::string& target, const std::vector<std::string>& arguments,
                 const std::string& metadata) {
    std::string inputs;
    for (const std::string& one : arguments) inputs += (inputs.empty() ? "" : ", ") + one;
    return "{\"target\": \"" + target + "\", \"inputs\": [" + inputs + "], \"outputs\": [" + tensorArgument(name) +
           "], \"metadata\": {" + metadata + "}, \"is_hop_single_tensor_return\": null, \"name\": \"" + name + "\"}";
}
Pt2Program reluProgram() {
    Pt2Program program;
    program.inputs = tensorArgument("x");
    program.inputSpecs = userInput("x");
    program.tensors = tensorValue("x", {"2"}, {"1"}) + ", " + tensorValue("relu", {"2"}, {"1"});
    program.nodes = call("relu", "torch.ops.aten.relu.default", {argument("self", tensorArgument("x"))});
    program.outputs = tensorArgument("relu");
    program.outputSpecs = userOutput("relu");
    return program;
}
std::string pt2Archive(const std::string& json, const std::vector<std::pair<std::string, std::string>>& entries) {
    std::vector<ZipFile> files = {{.name = "m/archive_format", .content = "pt2"},
                                  {.name = "m/archive_version", .content = "0"}};
    if (!json.empty()) files.push_back({.name = "m/models/model.json", .content = json});
    for (const auto& [name, content] : entries) files.push_back({.name = "m/" + name, .content = content});
    return buildZip(files);
}
std::string largeWeightArchive() {
    Pt2Program program = reluProgram();
    program.inputs = tensorArgument("p_w") + ", " + tensorArgument("x");
    program.inputSpecs = R"({"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}, )" + userInput("x");
    const std::string weight = tensorMeta({"1024", "1024"}, {"1024", "1"});
    program.tensors =
        tensorValue("x", {"1024"}, {"1"}) + ", \"p_w\": " + weight + ", " + tensorValue("y", {"1024"}, {"1"});
    program.nodes = call("y", "torch.ops.aten.mv.default",
                         {argument("self", tensorArgument("p_w")), argument("vec", tensorArgument("x"))});
    program.outputs = tensorArgument("y");
    program.outputSpecs = userOutput("y");
    const std::string config =
        R"({"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": )" +
        weight + "}}}";
    return pt2Archive(program.json(), {{"data/weights/model_weights_config.json", config},
                                       {"data/weights/weight_0", std::string(size_t{4} << 20, '\0')}});
}

}  // namespace cutaway::testing
