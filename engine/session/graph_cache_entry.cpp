#include "engine/session/graph_cache_entry.h"

#include <filesystem>
#include <set>
#include <unordered_map>

#include "engine/host/host_program.h"
#include "engine/host/make_host.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/runtime/module_io.h"
#include "engine/support/files.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostOwnBytes = size_t{64} << 20;  // of tensors that passes have made
constexpr const char* kGraphFile = "graph";
constexpr const char* kProgramFile = "program";

enum class TensorFrom : uint8_t { Nothing, Opened, Here };

/// A tensor as the memory of one of the opened graph's, or with its bytes.
class TensorTable {
  public:
    explicit TensorTable(const Module& opened) {
        for (const auto& [name, tensor] : opened.tensors)
            if (tensor.defined()) m_names.emplace(tensor.storage().get(), name);
    }
    Result<void> write(ByteWriter& out, const Tensor& tensor) {
        if (!tensor.defined()) {
            out.pod(TensorFrom::Nothing);
            return {};
        }
        const auto found = m_names.find(tensor.storage().get());
        out.pod(found == m_names.end() ? TensorFrom::Here : TensorFrom::Opened);
        out.pod(tensor.dtype());
        out.dims(tensor.sizes());
        if (found != m_names.end()) {
            out.text(found->second);
            out.dims(tensor.strides());
            out.pod(tensor.offset());
            return {};
        }
        m_own += tensor.bytes();
        if (m_own > kMostOwnBytes) return unsupported("passes have made large constants, which are not kept");
        CT_TRY_VOID(tensor.storage()->load());
        out.dims(tensor.strides());
        const Tensor packed = tensor.contiguous();
        out.text({static_cast<const char*>(packed.data()), packed.bytes()});
        return {};
    }

  private:
    std::unordered_map<const Storage*, std::string> m_names;
    size_t m_own = 0;
};

Tensor readTensor(ByteReader& in, const Module& opened) {
    const auto from = in.pod<TensorFrom>();
    if (from == TensorFrom::Nothing) return {};
    const auto dtype = in.pod<DType>();
    const Dims sizes = in.dims();
    if (static_cast<int>(dtype) >= kDTypeCount) in.fail();
    if (in.failed()) return {};
    if (from == TensorFrom::Opened) {
        const auto found = opened.tensors.find(std::string(in.text()));
        const Dims strides = in.dims();
        const auto offset = in.pod<int64_t>();
        if (in.failed() || found == opened.tensors.end() || !found->second.defined()) {
            in.fail();
            return {};
        }
        return Tensor(found->second.storage(), dtype, sizes, strides, offset);
    }
    const Dims strides = in.dims();
    const std::string_view bytes = in.text();
    Tensor packed = Tensor::empty(dtype, sizes);
    if (in.failed() || packed.bytes() != bytes.size()) {
        in.fail();
        return {};
    }
    std::memcpy(packed.data(), bytes.data(), bytes.size());
    return strides == packed.strides() ? packed : packed.clone(strides);
}

const NodeNumber kNoNodes = [](const Node&) { return 0u; };
const NodeAt kNoNodeAt = [](uint32_t) -> Node* { return nullptr; };

template <class Kind>
void writePort(ByteWriter& out, Kind kind, const std::string& target) {
    out.pod(kind);
    out.text(target);
}

/// What writeModule leaves out of the graph that runs are given.
void writeRest(ByteWriter& out, const Module& graph, std::vector<Tensor>& tensors) {
    out.text(graph.name);
    out.count(graph.inputs.size());
    for (const InputSpec& input : graph.inputs) {
        writePort(out, input.kind, input.target);
        out.pod(input.persistent);
        writeArgument(out, input.constant, kNoNodes);
    }
    out.count(graph.outputs.size());
    for (const OutputSpec& output : graph.outputs) writePort(out, output.kind, output.target);
    out.count(graph.tensors.size());
    for (const auto& [name, tensor] : graph.tensors) {
        out.text(name);
        tensors.push_back(tensor);
    }
    out.count(graph.recipes.size());
    for (const auto& [name, recipe] : graph.recipes) {
        out.text(name);
        writeModule(out, recipe->graph(), tensors);
    }
}
void readRest(ByteReader& in, Module& graph, const std::vector<Tensor>& tensors, size_t& next) {
    graph.name = in.text();
    in.each([&] {
        InputSpec& input = graph.inputs.emplace_back();
        input.kind = in.pod<InputSpec::Kind>();
        input.target = in.text();
        input.persistent = in.pod<bool>();
        input.constant = readArgument(in, kNoNodeAt);
    });
    in.each([&] {
        OutputSpec& output = graph.outputs.emplace_back();
        output.kind = in.pod<OutputSpec::Kind>();
        output.target = in.text();
    });
    in.each([&] {
        const std::string name(in.text());
        if (next < tensors.size()) graph.tensors[name] = tensors[next++];
        else in.fail();
    });
    in.each([&] {
        const std::string name(in.text());
        std::shared_ptr<Module> recipe = readModule(in, tensors, next);
        if (!in.failed()) graph.recipes[name] = makeRecipe(std::move(recipe));
    });
}

void writeInfo(ByteWriter& out, const BuildInfo& info, const Module& graph) {
    std::unordered_map<uint32_t, int64_t> positions;
    for (const Node& node : graph.graph().nodes())
        positions.emplace(index(node.id()), static_cast<int64_t>(positions.size()));
    for (const std::string* text : {&info.source, &info.compileLog}) out.text(*text);
    out.count(info.kernels.size());
    for (const KernelInfo& kernel : info.kernels) {
        for (const std::string* text : {&kernel.name, &kernel.source, &kernel.kind}) out.text(*text);
        for (const int64_t number : {kernel.bytesRead, kernel.bytesWritten, kernel.flops}) out.pod(number);
        Dims nodes;
        for (const NodeKey key : kernel.nodes)
            if (const auto at = positions.find(index(nodeOf(key))); graphOf(key) == 0 && at != positions.end())
                nodes.push_back(at->second);
        out.dims(nodes);
        out.count(kernel.reasons.size());
        for (const std::string& reason : kernel.reasons) out.text(reason);
    }
}
BuildInfo readInfo(ByteReader& in, const Module& graph) {
    std::vector<NodeKey> keys;
    for (const Node& node : graph.graph().nodes()) keys.push_back(nodeKey(0, node.id()));
    BuildInfo info;
    for (std::string* text : {&info.source, &info.compileLog}) *text = in.text();
    in.each([&] {
        KernelInfo& kernel = info.kernels.emplace_back();
        for (std::string* text : {&kernel.name, &kernel.source, &kernel.kind}) *text = in.text();
        for (int64_t* number : {&kernel.bytesRead, &kernel.bytesWritten, &kernel.flops}) *number = in.pod<int64_t>();
        for (const int64_t node : in.dims())
            if (node >= 0 && node < std::ssize(keys)) kernel.nodes.push_back(keys[static_cast<size_t>(node)]);
        in.each([&] { kernel.reasons.emplace_back(in.text()); });
    });
    return info;
}

/// The constants of host functions by name: `function` is the one that runs the graph.
Result<void> addNamed(const Module& graph, const std::string& function, std::map<std::string, Tensor>& found) {
    for (const Node& node : graph.graph().nodes()) {
        if (node.kind() != NodeKind::GetAttr || !node.type().tensor()) continue;
        CT_TRY(found[hostConstant(function, node.target())], attributeOf(graph, node));
    }
    for (const auto& [name, body] : graph.subgraphs) CT_TRY_VOID(addNamed(*body, function + "/" + name, found));
    return {};
}

}  // namespace

Result<void> writeCacheEntry(const std::string& folder, const Module& opened, const Module& graph,
                             const CpuProgram& program) {
    std::vector<Tensor> tensors;
    ByteWriter module;
    writeModule(module, graph, tensors);
    writeRest(module, graph, tensors);
    ByteWriter table;
    TensorTable tensorTable(opened);
    table.count(tensors.size());
    for (const Tensor& tensor : tensors) CT_TRY_VOID(tensorTable.write(table, tensor));
    ByteWriter all;
    all.text(table.bytes);
    all.text(module.bytes);
    CT_TRY_VOID(writeFile(folder + "/" + kGraphFile, all.bytes));

    const SerializedProgram kept = serialized(program);
    ByteWriter out;
    out.text(kept.host);
    writeInfo(out, kept.info, graph);
    std::map<std::string, size_t> libraries;
    out.count(kept.libraries.size());
    for (const std::string& path : kept.libraries) {
        const auto [at, fresh] = libraries.emplace(path, libraries.size());
        out.count(at->second);
        if (!fresh) continue;
        const std::string own = folder + "/kernels" + std::to_string(at->second) + ".so";
        std::error_code failed;
        fs::create_hard_link(path, own, failed);  // of the cache of kernels, which never changes a file
        if (failed) failed.clear(), fs::copy_file(path, own, failed);
        if (failed) return Error{ErrorCode::ToolFailed, failed.message(), own, {}};
    }
    return writeFile(folder + "/" + kProgramFile, out.bytes);
}

Result<GraphCacheEntry> readCacheEntry(const std::string& folder, const Module& opened, const std::string& store) {
    const auto wrong = [&](const char* file) { return invalidInput("the entry cannot be read", folder + "/" + file); };
    CT_TRY(const std::string bytes, readFile(folder + "/" + kGraphFile));
    ByteReader all(bytes);
    ByteReader table(all.text()), text(all.text());
    std::vector<Tensor> tensors;
    table.each([&] { tensors.push_back(readTensor(table, opened)); });
    if (table.failed()) return wrong(kGraphFile);
    size_t next = 0;
    const std::shared_ptr<Module> graph = readModule(text, tensors, next);
    if (!text.failed()) readRest(text, *graph, tensors, next);
    if (text.failed() || next != tensors.size()) return wrong(kGraphFile);
    graph->origin = opened.origin;

    CT_TRY(const std::string program, readFile(folder + "/" + kProgramFile));
    ByteReader in(program);
    SerializedProgram kept;
    kept.store = store;
    kept.host = in.text();
    kept.info = readInfo(in, *graph);
    in.each([&] { kept.libraries.push_back(folder + "/kernels" + std::to_string(in.pod<uint64_t>()) + ".so"); });
    if (in.failed()) return wrong(kProgramFile);
    if (!kept.libraries.empty()) kept.info.library = kept.libraries.front();
    CT_TRY(const Snapshot complete, withDeferredConstants(*graph));
    std::map<std::string, Tensor> named;
    CT_TRY_VOID(addNamed(complete ? *complete : *graph, "run", named));
    CT_TRY(CpuProgram loaded,
           loadSerialized(std::move(kept), [&](const HostProgram& host) -> Result<std::vector<Tensor>> {
               std::vector<Tensor> constants;
               for (const std::string& name : host.constants) {
                   const auto at = named.find(name);
                   if (at == named.end()) return wrong(kProgramFile);
                   constants.push_back(at->second);
               }
               return constants;
           }));
    return GraphCacheEntry{graph, std::move(loaded)};
}

}  // namespace cutaway
