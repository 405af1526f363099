#include "engine/formats/folder.h"

#include <algorithm>
#include <filesystem>

#include "engine/formats/text_file.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 20'000;
constexpr int kMaxFolderDepth = 8;

std::string_view baseName(std::string_view file) { return file.substr(file.rfind('/') + 1); }

/// Numbers in names compare as numbers: 2.py before 10.py.
bool naturalLess(const std::string& a, const std::string& b) {
    size_t i = 0, j = 0;
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    while (i < a.size() && j < b.size()) {
        if (digit(a[i]) && digit(b[j])) {
            const size_t begin = i, other = j;
            while (i < a.size() && digit(a[i])) ++i;
            while (j < b.size() && digit(b[j])) ++j;
            std::string_view left = std::string_view(a).substr(begin, i - begin),
                             right = std::string_view(b).substr(other, j - other);
            left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
            right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
            if (left.size() != right.size()) return left.size() < right.size();
            if (left != right) return left < right;
            continue;
        }
        if (a[i] != b[j]) return a[i] < b[j];
        ++i;
        ++j;
    }
    return a.size() - i < b.size() - j;
}

/// Files that may hold graphs, by what PyTorch calls them; others are listed only.
bool mayHoldGraphs(std::string_view file) {
    const std::string_view name = baseName(file);
    if (name.starts_with("output_code") || name == "__init__.py" || name.starts_with("ir_")) return false;
    return name.ends_with(".py") || name.ends_with(".log") || name.ends_with(".txt");
}

class FolderReader {
  public:
    FolderReader(const FileTree& tree, const std::string& path, const OpenOptions& options)
        : m_tree(tree), m_options(options) {
        m_file.path = path;
    }

    Result<OpenedFile> read() {
        const bool module = has("module.py") && !has("torchinductor") && findModule();
        m_file.format = module ? FileFormat::ModuleFolder : FileFormat::DebugFolder;
        for (const std::string& file : m_tree.files) {
            if (module && file == "module.py") {
                CT_TRY_VOID(readModule());
            } else if (!module && mayHoldGraphs(file)) readGraphs(file);
            else m_file.contents.push_back(file);
        }
        m_file.description = module ? "folder of a GraphModule (to_folder)"
                                    : "folder with " + std::to_string(m_file.graphs.size()) + " graphs";
        CT_TRY_VOID(requireGraphs(m_file, m_options));
        return std::move(m_file);
    }

  private:
    bool has(const std::string& file) const {
        return std::find(m_tree.files.begin(), m_tree.files.end(), file) != m_tree.files.end();
    }
    Result<std::shared_ptr<Storage>> readText(const std::string& file) const {
        CT_TRY(const ByteSource source, m_tree.read(file));
        return source.readText(file);
    }
    /// Whether module.py is one of to_folder; then its text is kept.
    bool findModule() {
        const auto text = readText("module.py");
        if (!text || textOf(**text).find("(torch.nn.Module):") == std::string_view::npos) return false;
        m_module = *text;
        return true;
    }

    void readGraphs(const std::string& file) {
        // One graph per file, so a file whose graph was not asked for is not read. Logs name their graphs themselves.
        if (!m_options.graph.empty() && m_options.graph != file && !m_options.graph.starts_with(file + ": ")) return;
        const auto bytes = readText(file);
        if (!bytes) return m_file.remarks.push_back(bytes.error().text());
        const auto known = RecognisedFile::of(*bytes, m_file.path + "/" + file);
        if (!known || (known->format() != FileFormat::FxText && known->format() != FileFormat::Repro &&
                       known->format() != FileFormat::StructuredTrace)) {
            m_file.contents.push_back(file);
            return;
        }
        auto opened = known->open();
        if (!opened) return m_file.remarks.push_back("graph '" + file + "' cannot be read: " + opened.error().text());
        const bool several = opened->graphs.size() > 1;
        for (OpenedGraph& graph : opened->graphs) {
            const std::string name = several ? file + ": " + graph.name : file;
            addGraph(m_file, std::move(graph), name, m_options);
        }
        for (std::string& remark : opened->remarks) m_file.remarks.push_back(file + ": " + remark);
    }

    /// module.py and the tensors beside it. The .pt files of child modules are whole pickled objects, which are never
    /// loaded.
    Result<void> readModule() {
        CT_TRY(OpenedFile opened, openTextFile(textOf(*m_module), m_file.path + "/module.py", {}));
        OpenedGraph graph = std::move(opened.graphs.front());
        auto& remarks = graph.module->origin.remarks;
        if (has("state_dict.pt")) {
            CT_TRY(ByteSource saved, m_tree.read("state_dict.pt"));
            auto value = readTorchSave(std::move(saved), m_file.path + "/state_dict.pt");
            if (!value) remarks.push_back("the tensors cannot be read: " + value.error().text());
            else
                for (auto& [name, tensor] : tensorsOf(*value))
                    graph.module->tensors.insert_or_assign(name, std::move(tensor));
        }
        for (Node& node : graph.module->graph().nodes())
            if (node.kind() == NodeKind::GetAttr)
                if (const auto found = graph.module->tensors.find(node.target());
                    found != graph.module->tensors.end() && node.type().isOpaque())
                    graph.module->graph().setType(node, typeOf(found->second));
        addGraph(m_file, std::move(graph), "module", m_options);
        return {};
    }
    static ValueType typeOf(const Tensor& tensor) {
        TensorType type = TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes()), tensor.device());
        type.strides = toSymDims(tensor.strides());
        return type;
    }

    const FileTree& m_tree;
    const OpenOptions& m_options;
    OpenedFile m_file;
    std::shared_ptr<Storage> m_module;  // module.py's text
};

}  // namespace

Result<FileTree> listFolder(const std::string& path) {
    FileTree tree;
    std::error_code error;
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
    if (error) return Error{ErrorCode::NotFound, "cannot list the folder: " + error.message(), path, {}};
    for (const fs::recursive_directory_iterator end; at != end; at.increment(error)) {
        if (error) return Error{ErrorCode::ToolFailed, "cannot list the folder: " + error.message(), path, {}};
        if (at.depth() >= kMaxFolderDepth) at.disable_recursion_pending();
        if (at->is_symlink(error) || !at->is_regular_file(error)) continue;
        if (tree.files.size() >= kMaxFiles)
            return Error{ErrorCode::Limit,
                         "more than " + std::to_string(kMaxFiles) + " files",
                         path,
                         {"open one of the folders below it"}};
        tree.files.push_back(at->path().lexically_relative(path).generic_string());
    }
    std::sort(tree.files.begin(), tree.files.end(), naturalLess);
    tree.read = [path](const std::string& file) { return ByteSource::open((fs::path(path) / file).string()); };
    return tree;
}

Result<OpenedFile> readFolder(const FileTree& tree, const std::string& path, const OpenOptions& options) {
    return FolderReader(tree, path, options).read();
}

}  // namespace cutaway
