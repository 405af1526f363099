#include "engine/formats/pt2.h"

#include <charconv>

#include "engine/formats/declared_types.h"
#include "engine/formats/inner_tensors.h"
#include "engine/formats/pt2_graph.h"
#include "engine/formats/pt2_guards.h"
#include "engine/formats/pt2_payload.h"
#include "engine/formats/pt2_samples.h"
#include "engine/ir/data_dependent.h"
#include "engine/ir/infer.h"
#include "engine/ops/operator_definition.h"

namespace cutaway {
namespace {

constexpr std::string_view kConfig = "config.json";

struct Program {
    std::unique_ptr<JsonDocument> document;  // provenance strings are copied; kept for what is read after the graph
    std::unique_ptr<Module> module;
    std::map<std::string, std::vector<std::string>, std::less<>> argumentNames;
};

Result<void> checkSchemaVersion(int64_t major, int64_t minor, const std::string& where) {
    if (major == 8 || (major == 0 && minor == 0)) return {};
    return unsupported(
        "schema version " + std::to_string(major) + "." + std::to_string(minor) + ", this reader knows 8.x", where,
        {"export the program again with PyTorch 2.2 to 2.11"});
}

void setSymbols(Module& module, const std::map<std::string, SymbolInfo>& symbols) {
    module.symbols = symbols;
    for (auto& [name, body] : module.subgraphs) setSymbols(*body, symbols);
}

/// Graphs for training may still write in place, which passes before functionalize see.
bool isForTraining(const Json& root) {
    if (const auto verifiers = root.find("verifiers"))
        for (const Json verifier : verifiers->items())
            if (verifier.text() == "TRAINING") return true;
    return false;
}

bool isFloat8(const Node& node) {
    const TensorType* type = node.type().tensor();
    return type != nullptr && type->dtype == DType::F8E4M3FN;
}
/// Says so where a conversion had other results in the PyTorch that wrote the file: the calls are the same.
void compareFloat8(std::string_view torch, Module& module) {
    if (!torch.starts_with("2.")) return;
    int minor = 0;
    const auto status = std::from_chars(torch.data() + 2, torch.data() + torch.size(), minor).ec;
    if (status != std::errc() || minor >= 13) return;
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall() || !isFloat8(node)) continue;
        const auto operands = node.inputs();
        if (std::any_of(operands.begin(), operands.end(), [](const Node* in) { return isFloat8(*in); })) continue;
        return module.origin.remarks.push_back("'" + node.name() +
                                               "' converts to float8_e4m3fn: what is too large becomes 448 here, as "
                                               "in PyTorch 2.13 and later; PyTorch " +
                                               std::string(torch) + ", which wrote the file, makes it NaN");
    }
}

/// By operator, the longest list of names; operators of the tables have their schema.
void takeArgumentNames(const Json& graph, Program& program) {
    const auto nodes = graph.find("nodes");
    if (!nodes) return;
    for (const Json node : nodes->items()) {
        const auto target = node.find("target"), inputs = node.find("inputs");
        if (!target || !target->text() || !inputs || !target->text()->starts_with("torch.ops.")) continue;
        const std::string op(target->text()->substr(10));
        if (isInTables(op)) continue;
        std::vector<std::string> names;
        for (const Json input : inputs->items()) {
            const auto name = input.find("name");
            names.emplace_back(name && name->text() ? *name->text() : std::string_view());
        }
        std::vector<std::string>& known = program.argumentNames[op];
        if (names.size() > known.size()) known = std::move(names);
    }
}

Result<Program> parseProgram(std::string_view json, const std::string& where) {
    Program program;
    CT_TRY(program.document, parseJson(json, where));
    const Json& root = program.document->root;
    CT_TRY(const Json version, root.objectAt("schema_version", where));
    CT_TRY(const int64_t major, version.integerAt("major", where));
    CT_TRY(const int64_t minor, version.integerAt("minor", where));
    CT_TRY_VOID(checkSchemaVersion(major, minor, where));
    CT_TRY(const Json graphModule, root.objectAt("graph_module", where));
    CT_TRY(const Json graph, graphModule.objectAt("graph", where));
    CT_TRY(const Json signature, graphModule.objectAt("signature", where));

    program.module = std::make_unique<Module>();
    Module& module = *program.module;
    Pt2Types types;
    if (const auto ranges = root.find("range_constraints")) CT_TRY_VOID(types.readRanges(*ranges, where));
    CT_TRY_VOID(readPt2Graph(graph, &signature, module, types, module.origin.remarks, where));
    takeArgumentNames(graph, program);
    takeInnerTensors(module);
    setSymbols(module, types.symbols());
    readPt2Guards(root, module);
    compareDeclaredTypes(module);
    const auto torch = root.find("torch_version");
    const std::string writer(torch && torch->text() ? *torch->text() : "unknown");
    if (torch && torch->text()) module.origin.torch = writer;
    compareFloat8(writer, module);
    module.origin.format = ".pt2 (PyTorch " + writer + ", schema " + std::to_string(major) + "." +
                           std::to_string(minor) + (isForTraining(root) ? ", exported for training)" : ")");
    return program;
}

/// Payloads must be what the graph says they are, or kernels would read past their ends.
Result<void> checkPayloads(Module& module, const std::string& where) {
    size_t position = 0;
    for (const Node* node : module.graph().placeholders()) {
        const InputSpec& spec = module.inputs[position++];
        if (spec.kind != InputSpec::Kind::Parameter && spec.kind != InputSpec::Kind::Buffer &&
            spec.kind != InputSpec::Kind::Constant)
            continue;
        const auto found = module.tensors.find(spec.target);
        if (found == module.tensors.end()) continue;  // a run makes it up (tensorsWithoutData)
        const TensorType* type = node->type().tensor();
        const Tensor& tensor = found->second;
        if (type == nullptr || tensor.dtype() != type->dtype || toSymDims(tensor.sizes()) != type->sizes)
            return invalidInput("the data of '" + spec.target + "' is " +
                                    TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text() +
                                    ", the graph says " + node->type().text(),
                                where);
    }
    return {};
}

OpenedFile openedArchive(const ZipArchive& archive, FileFormat format) {
    OpenedFile file;
    file.path = archive.where();
    file.format = format;
    return file;
}
void addModule(OpenedFile& file, OpenedGraph graph) {
    graph.module->name = graph.name;
    graph.module->origin.file = file.path;
    if (file.description.empty()) file.description = graph.module->origin.format;
    file.graphs.push_back(std::move(graph));
}

}  // namespace

Result<std::unique_ptr<Module>> readPt2Program(std::string_view json, const std::string& where) {
    CT_TRY(Program program, parseProgram(json, where));
    return std::move(program.module);
}

Result<OpenedFile> readPt2(const ZipArchive& archive, const OpenOptions& options) {
    OpenedFile file = openedArchive(archive, FileFormat::Pt2);
    if (archive.find("archive_version")) {
        CT_TRY(const std::string version, archive.readText("archive_version", ZipArchive::kMaxMarker));
        int number = -1;
        std::from_chars(version.data(), version.data() + version.size(), number);
        if (number != 0)
            return unsupported("archive version '" + version + "', this reader knows 0", archive.where(),
                               {"export the program again with PyTorch 2.8 to 2.11"});
    }
    for (const ZipEntry& entry : archive.entries()) {
        if (entry.name.starts_with("data/aotinductor/") || entry.name.starts_with("data/executorch/") ||
            entry.name.starts_with("data/mtia") || entry.name.starts_with("xl_model_weights/") ||
            entry.name.starts_with("extra/"))
            file.contents.push_back(entry.name + " (" + std::to_string(entry.size) + " bytes)");
        if (!entry.name.starts_with("models/") || !entry.name.ends_with(".json")) continue;
        OpenedGraph graph;
        graph.name = entry.name.substr(7, entry.name.size() - 12);
        if (!options.graph.empty() && graph.name != options.graph) continue;
        const std::string where = archive.where() + ": " + entry.name;
        CT_TRY(const std::shared_ptr<Storage> json, archive.read(entry));
        CT_TRY(Program program, parseProgram({reinterpret_cast<const char*>(json->data()), json->size()}, where));
        graph.module = std::move(program.module);
        graph.argumentNames = std::move(program.argumentNames);
        auto& remarks = graph.module->origin.remarks;
        CT_TRY_VOID(readPt2Payloads(archive, "data/weights/", graph.name, "weights_" + std::string(kConfig),
                                    graph.module->tensors, remarks));
        CT_TRY_VOID(readPt2Payloads(archive, "data/constants/", graph.name, "constants_" + std::string(kConfig),
                                    graph.module->tensors, remarks));
        CT_TRY_VOID(checkPayloads(*graph.module, where));
        readSampleInputs(archive, "data/sample_inputs/" + graph.name + ".pt", program.document->root, graph);
        addModule(file, std::move(graph));
    }
    if (file.graphs.empty() && !options.graph.empty())
        return Error{ErrorCode::NotFound, "no graph named '" + options.graph + "'", archive.where(), {}};
    if (file.graphs.empty() && file.contents.empty())
        return Error{ErrorCode::InvalidInput,
                     "an export that was not finished: models/*.json, the graph, is missing",
                     archive.where(),
                     {"torch.export.save failed after it had begun to write: look at its error, export again"}};
    return file;
}

Result<OpenedFile> readFlatPt2(const ZipArchive& archive, const OpenOptions& options) {
    OpenedFile file = openedArchive(archive, FileFormat::Pt2Flat);
    OpenedGraph graph;
    graph.name = "model";
    if (!options.graph.empty() && options.graph != graph.name)
        return Error{ErrorCode::NotFound, "no graph named '" + options.graph + "'", archive.where(), {}};
    if (archive.find("version")) {
        CT_TRY(const std::string version, archive.readText("version", ZipArchive::kMaxMarker));
        int64_t major = -1;
        const auto [end, status] = std::from_chars(version.data(), version.data() + version.size(), major);
        if (status != std::errc() || end == version.data() + version.size() || *end != '.')
            return unsupported("version '" + version.substr(0, 20) + "' from before schema 8", archive.where(),
                               {"export the program again with PyTorch 2.2 to 2.11"});
        CT_TRY_VOID(checkSchemaVersion(major, -1, archive.where()));
    }
    const std::string entry = "serialized_exported_program.json";
    const std::string where = archive.where() + ": " + entry;
    CT_TRY(const std::string json, archive.readText(entry));
    CT_TRY(Program program, parseProgram(json, where));
    graph.module = std::move(program.module);
    graph.argumentNames = std::move(program.argumentNames);
    auto& remarks = graph.module->origin.remarks;
    for (const std::string stem : {"serialized_state_dict", "serialized_constants"})
        for (const char* ending : {".pt", ".json"})
            CT_TRY_VOID(readSavedPayloads(archive, stem + ending, graph.module->tensors, remarks));
    CT_TRY_VOID(checkPayloads(*graph.module, where));
    readSampleInputs(archive, "serialized_example_inputs.pt", program.document->root, graph);
    for (const ZipEntry& extra : archive.entries())
        if (extra.name.starts_with("extra_files/"))
            file.contents.push_back(extra.name + " (" + std::to_string(extra.size) + " bytes)");
    addModule(file, std::move(graph));
    return file;
}

std::vector<std::string> differencesFromInference(const Module& module) {
    std::vector<std::string> differences;
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall() || node.op().isOpaque() || node.type().isOpaque()) continue;
        const auto inferred = inferCall(node.op(), node.args());
        const std::string line = module.name + ": " + node.name() + " (" + node.op().name() + "): ";
        if (!inferred && sizeDependsOnData(node.op(), node.args())) continue;
        if (!inferred) differences.push_back(line + inferred.error().text());
        else if (!inferred->isOpaque() && !sameType(*inferred, node.type())) {
            const auto show = [](const ValueType& type) {
                return type.tensor() ? type.tensor()->fullText() : type.tuple() ? "a tuple" : type.text();
            };
            differences.push_back(line + "inferred " + show(*inferred) + ", recorded " + show(node.type()));
        }
    }
    for (const auto& [name, body] : module.subgraphs)
        for (std::string& line : differencesFromInference(*body))
            differences.push_back(module.name + "." + std::move(line));
    return differences;
}

}  // namespace cutaway
