#include "engine/formats/package.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/formats/json.h"
#include "engine/formats/package_source.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

constexpr std::string_view kModels = "data/aotinductor/", kSource = "generated source";
constexpr uint64_t kMaxMetadata = 1 << 20, kMaxSource = uint64_t{64} << 20;

std::string_view kindOf(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{".so", "compiled library"},
                                                                               {".o", "object file"},
                                                                               {".cubin", "GPU code"},
                                                                               {".ptx", "GPU assembly"},
                                                                               {".spv", "GPU code"},
                                                                               {".hsaco", "GPU code"},
                                                                               {"metadata.json", "metadata"},
                                                                               {".json", "JSON"},
                                                                               {".cpp", kSource},
                                                                               {".h", kSource},
                                                                               {".weights", "weights"},
                                                                               {".blob", "weights"},
                                                                               {".bin", "weights"},
                                                                               {".cu", kSource},
                                                                               {".pt", "tensors"}};
    for (const auto& [ending, kind] : kKinds)
        if (name.ends_with(ending)) return kind;
    return "data";
}

bool isWrapper(std::string_view file) { return file.ends_with(".wrapper.cpp") || file.ends_with(".wrapper.so"); }

/// The model that a file belongs to: the folder below data/aotinductor, else the one that it lies in.
std::string modelOf(std::string_view file, const std::string& path) {
    if (const size_t at = file.find(kModels); at != std::string_view::npos) {
        const std::string_view rest = file.substr(at + kModels.size());
        const size_t slash = rest.find('/');
        return slash == std::string_view::npos ? std::string() : std::string(rest.substr(0, slash));
    }
    if (!isWrapper(file) && kindOf(file) != kSource && kindOf(file) != "metadata") return {};
    const size_t slash = file.rfind('/');
    std::string_view folder = slash == std::string_view::npos ? std::string_view(path) : file.substr(0, slash);
    while (folder.ends_with('/')) folder.remove_suffix(1);
    return std::string(folder.substr(folder.rfind('/') + 1));
}

std::string plainText(const Json& value) {
    if (const auto text = value.text()) return std::string(*text);
    if (const auto number = value.integer()) return std::to_string(*number);
    if (const auto flag = value.flag()) return *flag ? "true" : "false";
    if (const auto real = value.real()) return std::to_string(*real);
    return value.isNull() ? "none" : "…";
}

/// Names of ATen's operators without their overloads.
bool isOperator(std::string_view name) {
    static const std::set<std::string, std::less<>> names = [] {
        std::set<std::string, std::less<>> all;
        for (const Op* op : allOps()) all.emplace(op->baseName());
        return all;
    }();
    return names.contains(name);
}

class PackageReader {
  public:
    PackageReader(const FileTree& tree, const std::string& path) : m_tree(tree) { m_package.path = path; }

    CompiledPackage read() {
        for (const std::string& file : m_tree.files) {
            const auto bytes = m_tree.read(file);
            m_package.files.push_back(
                {file, std::string(kindOf(file)), bytes ? static_cast<int64_t>(bytes->size()) : 0});
            if (!bytes) m_package.remarks.push_back(bytes.error().text());
            const std::string name = modelOf(file, m_package.path);
            if (name.empty()) continue;
            PackagedModel& model = m_models[name];
            if (file.ends_with("metadata.json")) readMetadata(file, model);
            else if (file.ends_with(".cpp") || file.ends_with(".cu")) readSource(file, model);
            else if (file.ends_with(".so")) model.library = file;
        }
        for (auto& [name, model] : m_models) {
            model.name = name;
            attachSources(model);
            m_package.models.push_back(std::move(model));
        }
        return std::move(m_package);
    }

  private:
    std::shared_ptr<Storage> textAt(const std::string& file, uint64_t limit) {
        const auto source = m_tree.read(file);
        if (source && source->size() > limit) {
            m_package.remarks.push_back(file + " is too large to look into");
            return nullptr;
        }
        auto text = source ? source->readText(file) : Result<std::shared_ptr<Storage>>(source.error());
        if (!text) m_package.remarks.push_back(text.error().text());
        return text ? *text : nullptr;
    }
    /// Wrapper and kernels have a file each, which say the same.
    void readMetadata(const std::string& file, PackagedModel& model) {
        const auto text = textAt(file, kMaxMetadata);
        if (!text) return;
        const auto document = parseJson(textOf(*text), file);
        if (!document) return m_package.remarks.push_back(document.error().text());
        for (const auto& [key, value] : (*document)->root.members()) {
            std::pair<std::string, std::string> one(key, plainText(Json(value)));
            if (std::find(model.metadata.begin(), model.metadata.end(), one) == model.metadata.end())
                model.metadata.push_back(std::move(one));
        }
    }
    void readSource(const std::string& file, PackagedModel& model) {
        const auto text = textAt(file, kMaxSource);
        if (!text) return;
        readWrapperSource(textOf(*text), isOperator, model);
        for (auto& [name, source] : kernelSources(textOf(*text)))
            m_sources[model.name.empty() ? modelOf(file, m_package.path) : model.name][name] = {file,
                                                                                                std::move(source)};
    }
    /// Kernels that no call names are listed after the calls.
    void attachSources(PackagedModel& model) {
        auto& sources = m_sources[model.name];
        std::set<std::string> called;
        for (PackagedCall& call : model.calls)
            if (const auto found = sources.find(call.name); found != sources.end()) {
                std::tie(call.file, call.source) = found->second;
                called.insert(call.name);
            }
        for (const auto& [name, source] : sources)
            if (!called.contains(name)) {
                PackagedCall& call = model.calls.emplace_back();
                call.name = name;
                call.kernel = true;
                call.ops = fusedOperators(name, isOperator);
                std::tie(call.file, call.source) = source;
            }
    }

    const FileTree& m_tree;
    CompiledPackage m_package;
    std::map<std::string, PackagedModel> m_models;
    std::map<std::string, std::map<std::string, std::pair<std::string, std::string>>> m_sources;  // by model and kernel
};

}  // namespace

bool isPackage(const FileTree& tree) {
    const auto any = [&](auto&& holds) { return std::any_of(tree.files.begin(), tree.files.end(), holds); };
    return any([](const std::string& file) { return isWrapper(file) || file.find(kModels) != std::string::npos; }) &&
           !any([](const std::string& file) { return file.ends_with(".py"); });
}

CompiledPackage readPackage(const FileTree& tree, const std::string& path) { return PackageReader(tree, path).read(); }

OpenedFile describePackage(const CompiledPackage& package) {
    OpenedFile file;
    file.path = package.path;
    file.format = FileFormat::CompiledPackage;
    size_t libraries = 0, sources = 0;
    for (const PackagedFile& one : package.files) {
        file.contents.push_back(one.name + " (" + std::to_string(one.bytes) + " bytes, " + one.kind + ")");
        libraries += one.name.ends_with(".so");
        sources += one.kind == kSource;
    }
    const std::string several = package.models.size() > 1 ? " of " : "";
    for (const PackagedModel& model : package.models) {
        const std::string of = several.empty() ? "" : several + model.name;
        for (const PackagedValue& input : model.inputs)
            file.contents.push_back("input" + of + " '" + input.name + "': " + input.type);
        for (const PackagedValue& output : model.outputs)
            file.contents.push_back("output" + of + " '" + output.name + "': " + output.type);
        for (const PackagedConstant& constant : model.constants)
            file.contents.push_back("constant" + of + " '" +
                                    (constant.original.empty() ? constant.name : constant.original) +
                                    "': " + constant.type + (constant.kind.empty() ? "" : ", " + constant.kind));
        std::set<std::string> kernels;
        for (const PackagedCall& call : model.calls)
            if (call.kernel && kernels.insert(call.name).second)
                file.contents.push_back("kernel" + of + " " + call.name);
        file.remarks.push_back("model '" + model.name + "'");
        for (const auto& [key, value] : model.metadata) file.remarks.push_back(key + " = " + value);
    }
    file.description = "compiled package (AOTInductor), for inspection only: " + std::to_string(package.models.size()) +
                       (package.models.size() == 1 ? " model, " : " models, ") + std::to_string(libraries) +
                       (libraries == 1 ? " library, " : " libraries, ") + std::to_string(sources) +
                       (sources == 1 ? " source" : " sources");
    file.remarks.insert(file.remarks.end(), package.remarks.begin(), package.remarks.end());
    file.remarks.emplace_back(
        "holds compiled code and no graph; `cutaway-cli package` shows its sources and calls, and "
        "the .pt2 that torch.export.save wrote its graph");
    return file;
}

}  // namespace cutaway
