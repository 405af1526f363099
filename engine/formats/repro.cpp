#include "engine/formats/repro.h"

#include <filesystem>

#include "engine/formats/checked_tensor.h"
#include "engine/formats/recorded_stage.h"
#include "engine/formats/repro_classes.h"
#include "engine/formats/repro_inputs.h"
#include "engine/formats/text_file.h"
#include "engine/formats/untyped_calls.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/syntax.h"

namespace cutaway {
namespace {

/// Inputs whose data was not saved are made when the file is opened, up to this size; larger ones when they are needed.
constexpr int64_t kMaxMadeBytes = int64_t{64} << 20;
constexpr int64_t kDefaultHint = 8;  // REPRO-7

/// Lines from the one that begins with `head` (after blanks) up to the next that is indented no deeper.
std::string_view functionText(std::string_view text, std::string_view head) {
    size_t begin = std::string_view::npos, indent = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        const size_t blanks = line.find_first_not_of(" \t\r");
        if (blanks != std::string_view::npos) {
            if (begin != std::string_view::npos && blanks <= indent) return text.substr(begin, at - begin);
            if (begin == std::string_view::npos && line.substr(blanks).starts_with(head)) {
                begin = at;
                indent = blanks;
            }
        }
        at = end + 1;
    }
    return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

class ReproReader {
  public:
    ReproReader(std::string_view text, const std::string& path, const StorageFinder& find)
        : m_script(withNestedClasses(text)), m_text(m_script), m_path(path), m_find(find) {}

    Result<OpenedFile> read() {
        CT_TRY_VOID(findParts());
        CT_TRY_VOID(matchInputs());
        OpenedGraph graph;
        CT_TRY(graph.module, parseText(m_text, {.file = m_path, .types = m_types}));
        Module& module = *graph.module;
        typeUntypedCalls(module);
        for (const auto& [symbol, value] : m_inputs.symbols) module.symbols[symbol].hint = value;
        setAttributes(module);
        describeModules(module, functionText(m_text.substr(m_class), "def __init__(self"));
        graph.sampleInputs = sampleInputs();
        graph.noSamples = m_noSamples;
        for (std::string& remark : m_inputs.remarks) module.origin.remarks.push_back(std::move(remark));
        module.origin.format = description();
        // Scripts of after_aot hold what AOTAutograd and the joint passes have made; those of after_dynamo hold a graph
        // as it was captured.
        if (m_text.find("torch._dynamo.repro.after_aot") != std::string_view::npos)
            setNextStage(module, nextStage("fx_graph_runnable"));
        graph.name = module.name;
        OpenedFile file;
        file.path = m_path;
        file.format = FileFormat::Repro;
        file.description = module.origin.format;
        file.contents = settings();
        file.graphs.push_back(std::move(graph));
        return file;
    }

  private:
    Result<void> findParts() {
        m_class = m_text.find("(torch.nn.Module):");
        if (m_class == std::string_view::npos) {
            if (const size_t load = m_text.find("torch.export.load("); load != std::string_view::npos)
                return unsupported("the script loads an exported program", m_path,
                                   {"open the file it names: " +
                                    std::string(m_text.substr(load + 18, m_text.find(')', load) - load - 18))});
            return unsupported("no graph was saved in this script", m_path,
                               {"open the graph that was compiled, fx_graph_readable.py"});
        }
        m_class = m_text.rfind('\n', m_class) == std::string_view::npos ? 0 : m_text.rfind('\n', m_class) + 1;
        m_inputs.symbols = readReproSymbols(m_text.substr(0, m_class));
        const std::string_view loader = functionText(m_text.substr(m_class), "def load_args(reader)");
        if (loader.find("reader.") == std::string_view::npos &&
            loader.find("unsupported type") == std::string_view::npos)
            return {};
        auto read = readLoadArgs(loader, m_inputs);
        if (read) return {};
        Error error = std::move(read).error();
        error.where = m_path + ": load_args" + (error.where.empty() ? "" : " " + error.where);
        return error;
    }

    /// REPRO-11: the n-th reader line belongs to the n-th placeholder.
    Result<void> matchInputs() {
        CT_TRY(const auto tree, fxtext::parseSyntax(m_text));
        const auto& parameters = tree->root->parameters;
        const std::vector<ReproInput>& inputs = m_inputs.inputs;
        const bool explained = std::any_of(inputs.begin(), inputs.end(), [](const ReproInput& input) {
            return input.kind == ReproInput::Kind::Unsupported;
        });
        if (parameters.size() != inputs.size() && !explained)
            return invalidInput("forward takes " + std::to_string(parameters.size()) + " inputs, load_args reads " +
                                    std::to_string(inputs.size()),
                                m_path);
        for (size_t i = 0; i < std::min(parameters.size(), inputs.size()); ++i)
            m_types.emplace(std::string(parameters[i].name), typeOf(inputs[i]));
        for (ReproAttribute& attribute : readConstructor(functionText(m_text.substr(m_class), "def __init__(self"))) {
            if (attribute.type) m_types.emplace(attribute.name, ValueType(*attribute.type));
            m_attributes.push_back(std::move(attribute));
        }
        return {};
    }

    /// REPRO-6: a number that exactly one symbol has stands for the symbol.
    ValueType typeOf(const ReproInput& input) {
        if (input.kind == ReproInput::Kind::Tensor) return input.type;
        if (input.kind != ReproInput::Kind::SymInt)
            return OpaqueType{input.kind == ReproInput::Kind::None ? "None" : "unsupported"};
        std::vector<std::string> matching;
        for (const auto& [symbol, value] : m_inputs.symbols)
            if (value == input.value) matching.push_back(symbol);
        if (matching.size() == 1) return SymType{DType::I64, Expr::symbol(matching[0])};
        if (!m_inputs.symbols.empty())
            m_inputs.remarks.push_back("input '" + input.name +
                                       "': " + (matching.empty() ? "no symbol has" : "several symbols have") +
                                       " the value " + std::to_string(input.value) + ", so it is kept as that number");
        return SymType{DType::I64, Expr::integer(input.value)};
    }

    void setAttributes(Module& module) {
        for (const ReproAttribute& attribute : m_attributes) {
            if (!attribute.type) continue;
            if (attribute.exact) {
                Tensor tensor = Tensor::empty(attribute.type->dtype, toInts(attribute.type->sizes));
                storeElements(tensor.dtype(), tensor.data(), 1, tensor.numel(), attribute.values.data());
                module.tensors.emplace(attribute.name, std::move(tensor));
            } else {
                m_inputs.remarks.push_back("the data of '" + attribute.name +
                                           "' was not saved; seeded values take its place");
            }
        }
        for (const Node& node : module.graph().nodes())
            if (node.kind() == NodeKind::GetAttr && node.type().isOpaque())
                m_inputs.remarks.push_back("incomplete graph: '" + node.target() +
                                           "' is a graph or module whose content was not saved");
    }

    // -- sample inputs
    std::optional<int64_t> number(const SymInt& size) {
        const Expr value = substitute(size.expr(), [this](const std::string& symbol) {
            const auto found = m_inputs.symbols.find(symbol);
            return Expr::integer(found == m_inputs.symbols.end() ? kDefaultHint : found->second);
        });
        return value.asInt();
    }
    std::optional<Dims> numbers(const SymDims& dims) {
        Dims out;
        for (const SymInt& dim : dims) {
            const auto value = number(dim);
            if (!value || *value < 0) return std::nullopt;
            out.push_back(*value);
        }
        return out;
    }
    /// REPRO-8: the saved bytes, else seeded values: normal floats, zeros for integers and bools.
    std::shared_ptr<Storage> storageFor(const ReproInput& input, int64_t needed) {
        std::shared_ptr<Storage>& storage = m_storages[input.storage];
        if (storage) return storage;
        const ReproStorage& wanted = m_inputs.storages[input.storage];
        if (!wanted.hash.empty()) storage = m_find(wanted.hash);
        if (storage) return storage;
        const int64_t bytes = std::max(number(wanted.bytes).value_or(0), needed);
        if (bytes < 0 || (m_madeBytes += bytes) > kMaxMadeBytes) return nullptr;
        if (!wanted.hash.empty())
            m_inputs.remarks.push_back("the data of input '" + input.name + "' (storage " + wanted.hash +
                                       ") is not beside the script; seeded values take its place");
        storage = Storage::allocate(static_cast<size_t>(bytes));
        if (isFloating(input.type.dtype) || isComplex(input.type.dtype)) {
            const bool complex = isComplex(input.type.dtype);
            const DType part = complex ? (input.type.dtype == DType::C128  ? DType::F64
                                          : input.type.dtype == DType::C64 ? DType::F32
                                                                           : DType::F16)
                                       : input.type.dtype;
            std::vector<double> values(storage->size() / static_cast<size_t>(byteSize(part)));
            Random random(input.storage + 1);
            for (double& value : values) value = random.normal();
            storeElements(part, storage->data(), 1, static_cast<int64_t>(values.size()), values.data());
        }
        return storage;
    }
    std::vector<SavedValue> sampleInputs() {
        std::vector<SavedValue> samples;
        m_storages.resize(m_inputs.storages.size());
        for (const ReproInput& input : m_inputs.inputs) {
            if (input.kind == ReproInput::Kind::Unsupported) return {};
            if (input.kind == ReproInput::Kind::None) samples.push_back({});
            if (input.kind == ReproInput::Kind::SymInt) samples.push_back({input.value});
            if (input.kind != ReproInput::Kind::Tensor) continue;
            const auto sizes = numbers(input.type.sizes), strides = numbers(input.type.strides);
            const auto offset = number(input.type.offset);
            if (!sizes || !strides || !offset) return {};
            const auto elements = reach(*sizes, *strides, *offset, "invalid tensor", m_path);
            if (!elements || *elements > kMaxMadeBytes * 64)
                return leaveOut(input, elements ? "too large" : elements.error().message);
            auto storage = storageFor(input, *elements * byteSize(input.type.dtype));
            if (!storage) return leaveOut(input, "no data");
            auto tensor = makeTensor(storage, input.type.dtype, *sizes, *strides, *offset, "invalid tensor", m_path);
            if (!tensor) return leaveOut(input, tensor.error().message);
            samples.push_back({std::move(*tensor)});
        }
        return samples;
    }
    std::vector<SavedValue> leaveOut(const ReproInput& input, const std::string& why) {
        m_noSamples = "sample inputs are left out: '" + input.name + "': " + why;
        m_inputs.remarks.push_back(m_noSamples);
        return {};
    }

    // -- what stands around the graph
    std::string description() const {
        const size_t version = m_text.find("# torch version: ");
        if (version == std::string_view::npos) return "repro script";
        const std::string_view rest = m_text.substr(version + 17);
        return "repro script (PyTorch " + std::string(rest.substr(0, rest.find('\n'))) + ")";
    }
    /// Options and environment as the script sets them.
    std::vector<std::string> settings() const {
        std::vector<std::string> out;
        std::string_view head = m_text.substr(0, m_class);
        while (!head.empty()) {
            const size_t end = std::min(head.find('\n'), head.size());
            const std::string_view line = head.substr(0, end);
            head.remove_prefix(std::min(end + 1, head.size()));
            if (line.starts_with("os.environ[") ||
                (line.starts_with("torch.") && line.find(".config.") != std::string_view::npos &&
                 line.find(" = ") != std::string_view::npos))
                out.emplace_back(line);
        }
        return out;
    }

    const std::string m_script;
    const std::string_view m_text;
    const std::string& m_path;
    const StorageFinder& m_find;
    size_t m_class = 0;
    ReproInputs m_inputs;
    std::string m_noSamples;  // OpenedGraph::noSamples
    std::vector<ReproAttribute> m_attributes;
    std::map<std::string, ValueType> m_types;
    std::vector<std::shared_ptr<Storage>> m_storages;
    int64_t m_madeBytes = 0;
};

}  // namespace

Result<OpenedFile> readRepro(std::string_view text, const std::string& path, const StorageFinder& find) {
    return ReproReader(text, path, find).read();
}

namespace {

namespace fs = std::filesystem;

/// The folder that the script saves to: the text of `save_dir=` in its last call.
fs::path savedTo(std::string_view text) {
    const size_t at = text.rfind("save_dir=");
    if (at == std::string_view::npos || at + 10 >= text.size()) return {};
    const char quote = text[at + 9];
    const size_t end = text.find(quote, at + 10);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) return {};
    return fs::path(text.substr(at + 10, end - at - 10));
}

/// Where data may lie: below the script's folder and the few around it, at the places that PyTorch uses and at the end
/// of `saved`, since folders are copied from one machine to another; at `saved` itself; and in all that are called
/// storages below the script's folder.
std::vector<fs::path> storageFolders(const fs::path& script, const fs::path& saved) {
    constexpr int kAround = 4, kDeep = 8;
    std::vector<fs::path> ends = {"storages", "checkpoints/storages"}, found;
    fs::path end = "storages";
    for (fs::path rest = saved.relative_path(); !rest.empty(); rest = rest.parent_path()) {
        end = rest.filename() / end;
        ends.push_back(end);
    }
    fs::path around = script.empty() ? fs::path(".") : script;
    for (int level = 0; level < kAround; ++level, around = around.parent_path()) {
        for (const fs::path& each : ends) found.push_back(around / each);
        if (!around.has_parent_path() || around == around.root_path()) break;
    }
    if (saved.is_absolute()) found.push_back(saved / "storages");
    std::error_code error;
    for (fs::recursive_directory_iterator at(script, fs::directory_options::skip_permission_denied, error), last;
         !error && at != last; at.increment(error)) {
        if (at.depth() >= kDeep) at.disable_recursion_pending();
        std::error_code unknown;
        if (at->path().filename() == "storages" && at->is_directory(unknown)) found.push_back(at->path());
    }
    return found;
}

}  // namespace

StorageFinder storagesBeside(const std::string& path, std::string_view text) {
    const auto folders = std::make_shared<std::vector<fs::path>>();
    return [folder = fs::path(path).parent_path(), saved = savedTo(text),
            folders](const std::string& hash) -> std::shared_ptr<Storage> {
        // A name from a file becomes part of a path only if it can be nothing but a hash.
        if (hash.size() != 40 || hash.find_first_not_of("0123456789abcdef") != std::string::npos) return nullptr;
        if (folders->empty()) *folders = storageFolders(folder, saved);
        for (const fs::path& place : *folders) {
            const std::string file = (place / hash).string();
            auto bytes = ByteSource::open(file);
            if (!bytes) continue;
            const auto read = readTorchSave(std::move(*bytes), file);
            if (read && read->tensor()) return read->tensor()->storage();
        }
        return nullptr;
    };
}

}  // namespace cutaway
