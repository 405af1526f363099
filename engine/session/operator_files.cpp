#include "cutaway/operator_files.h"

#include <dirent.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "cutaway/guarded.h"
#include "engine/ops/operator_definition.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/passes/defined_operators.h"
#include "engine/session/node_keys.h"
#include "engine/session/session_state.h"
#include "engine/support/files.h"
#include "engine/support/process.h"

namespace fs = std::filesystem;

namespace cutaway {
namespace {

constexpr size_t kMostOperatorBytes = 4 << 20;
constexpr int kFoldersAbove = 4;  // of a build tree, from its programs to the sources

std::string dataHome() {
    if (const char* given = std::getenv("XDG_DATA_HOME"); given != nullptr && *given == '/') return given;
    const char* home = std::getenv("HOME");
    return home != nullptr && *home == '/' ? std::string(home) + "/.local/share" : std::string();
}

/// The folder that comes with the program: where it is installed, or in the tree that it was built in.
std::string ownFolder() {
    std::error_code error;
    const fs::path bin = fs::path(programPath()).parent_path();
    if (const fs::path installed = bin.parent_path() / "share" / "cutaway" / "operators";
        fs::is_directory(installed, error))
        return installed.string();
    fs::path above = bin;
    for (int i = 0; i < kFoldersAbove; ++i, above = above.parent_path())
        if (const fs::path there = above / "resources" / "operators"; fs::is_directory(there, error))
            return there.string();
    return {};
}

/// By readdir: libstdc++'s directory_iterator ends the program where memory is short.
std::vector<std::string> filesOf(const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return {path};
    std::vector<std::string> out;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name.ends_with(".txt") && !name.starts_with(".")) out.push_back((fs::path(path) / name).string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace

std::vector<OperatorFolder> operatorFolders() {
    std::vector<OperatorFolder> out;
    if (const char* given = std::getenv("CUTAWAY_OPERATORS")) {
        std::string_view rest = given;
        while (!rest.empty()) {
            const size_t end = std::min(rest.find(':'), rest.size());
            if (end > 0) out.push_back({std::string(rest.substr(0, end)), "CUTAWAY_OPERATORS", {}});
            rest.remove_prefix(std::min(rest.size(), end + 1));
        }
    }
    if (const std::string data = dataHome(); !data.empty()) out.push_back({data + "/cutaway/operators", "user", {}});
    if (const std::string own = ownFolder(); !own.empty()) out.push_back({own, "Cutaway", {}});
    for (OperatorFolder& folder : out) {
        std::error_code error;
        const fs::file_status status = fs::status(folder.path, error);
        const bool asked = folder.from == "CUTAWAY_OPERATORS";
        // A relative path would read what lies where the program was started, beside a model.
        if (!folder.path.starts_with("/")) folder.problem = "it is not an absolute path, so nothing is read from there";
        else if (!fs::exists(status) && (asked || status.type() != fs::file_type::not_found))
            folder.problem = "it cannot be read: " + error.message();
    }
    return out;
}

std::vector<DefinedOperator> loadDefinedOperators(std::vector<std::string>* remarks) {
    std::vector<DefinedOperator> out;
    std::set<std::string> names;
    std::vector<const Op*> ops;
    const auto remark = [&](const std::string& where, const std::string& why) {
        if (remarks != nullptr) remarks->push_back("operators of " + where + " are left out: " + why);
    };
    for (const OperatorFolder& folder : operatorFolders()) {
        if (!folder.problem.empty()) {
            remark(folder.path, folder.problem);
            continue;
        }
        std::error_code none;
        if (!fs::exists(folder.path, none)) continue;
        for (const std::string& file : filesOf(folder.path)) {
            const auto text = readTextFile(file, kMostOperatorBytes);
            std::vector<std::string> known;
            const auto made = text ? operatorsOf(*text, file, &known) : Result<std::vector<const Op*>>(text.error());
            if (!made) {
                remark(file, made.error().text());
                continue;
            }
            for (const std::string& name : known) remark(file, name + " is an operator that Cutaway knows");
            for (const Op* op : *made) {
                if (!names.insert(op->name()).second) continue;
                ops.push_back(op);
                out.push_back({op->name(), definitionOf(*op)->text, file, folder.from});
            }
        }
    }
    setDefinedOperators(DefinedBy::Files, ops);
    return out;
}

Result<std::vector<DefinedOperator>> checkOperators(const std::string& text, const std::string& name) {
    return guarded([&]() -> Result<std::vector<DefinedOperator>> {
        CT_TRY(const auto ops, operatorsOf(text, name));
        std::vector<DefinedOperator> out;
        for (const Op* op : ops) out.push_back({op->name(), definitionOf(*op)->text, name, {}});
        return out;
    });
}

namespace {

/// What PyTorch's schema calls the kind of an argument; empty for None, of which only other calls can tell.
std::string argumentKind(const Argument& value) {
    if (const Node* node = value.node()) {
        if (const SymType* number = node->type().sym())
            return number->dtype == DType::I64 ? "SymInt" : number->dtype == DType::Bool ? "SymBool" : "SymFloat";
        return node->type().tuple() ? "Tensor[]" : "Tensor";
    }
    if (const std::vector<Argument>* items = value.list()) {
        std::string inner = "int";
        for (const Argument& item : *items) {
            const std::string kind = argumentKind(item);
            if (kind.empty()) return "Tensor?[]";
            if (inner == "int" || kind == "SymInt" || kind == "float") inner = kind;
        }
        return inner + "[]";
    }
    if (value.get<bool>()) return "bool";
    if (value.get<int64_t>()) return "int";
    if (value.get<Expr>()) return "SymInt";
    if (value.get<double>()) return "float";
    if (value.get<std::string>()) return "str";
    if (value.get<DType>()) return "ScalarType";
    if (value.get<Device>()) return "Device";
    if (value.get<Layout>()) return "Layout";
    if (value.get<MemoryFormat>()) return "MemoryFormat";
    return {};
}

/// A parameter as the calls of a graph show it.
struct ObservedParameter {
    std::string name, kind;
    bool optional = false, left = false;  // None in some call; left out by some
    void see(const Argument& value) {
        const std::string now = argumentKind(value);
        optional |= now.empty();
        if (now.empty()) return;
        const bool wider = kind.empty() || (kind == "int" && (now == "SymInt" || now == "float")) ||
                           (kind == "int[]" && (now == "SymInt[]" || now == "float[]"));
        if (wider) kind = now;
    }
    std::string text() const {
        return (kind.empty() ? "Tensor" : kind) + (optional || left || kind.empty() ? "?" : "") + " " + name +
               (left ? "=None" : "");
    }
};

std::string resultKinds(const ValueType& type) {
    if (!type.tuple()) return "Tensor";
    std::string out;
    for (size_t i = 0; i < type.tuple()->size(); ++i) out += i == 0 ? "(Tensor" : ", Tensor";
    return out + ")";
}

std::string definitionStart(const Module& module, const Node& call, const std::vector<std::string>& names) {
    std::vector<ObservedParameter> parameters;
    const auto find = [&](const std::string& name) -> ObservedParameter* {
        for (ObservedParameter& one : parameters)
            if (one.name == name) return &one;
        return nullptr;
    };
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall() || &node.op() != &call.op()) continue;
        for (size_t i = 0; i < node.args().size(); ++i) {
            if (i >= parameters.size()) {
                const bool named = i < names.size() && !names[i].empty();
                parameters.push_back({named ? names[i] : "a" + std::to_string(i), {}, false, false});
            }
            parameters[i].see(node.args()[i]);
        }
        for (const auto& [key, value] : node.kwargs()) {
            if (find(key) == nullptr) parameters.push_back({key, {}, false, false});
            find(key)->see(value);
        }
    }
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall() || &node.op() != &call.op()) continue;
        for (size_t i = 0; i < parameters.size(); ++i) {
            const auto& kwargs = node.kwargs();
            parameters[i].left |= i >= node.args().size() &&
                                  std::none_of(kwargs.begin(), kwargs.end(),
                                               [&](const auto& one) { return one.first == parameters[i].name; });
        }
    }
    std::string name = call.op().name();
    if (const size_t dot = name.find('.'); dot != std::string::npos) name.replace(dot, 1, "::");
    std::string text = "operator " + name + "(", first;
    for (const ObservedParameter& one : parameters) {
        text += (text.back() == '(' ? "" : ", ") + one.text();
        if (first.empty() && one.kind == "Tensor") first = one.name;
    }
    return text + ") -> " + resultKinds(call.type()) +
           "\n  why\n  computes\n    # one call a line, of ATen's operators or torch's functions\n    r = torch.clone(" +
           first + ")\n    return r\n";
}

bool wantsDefinition(const Node& node) {
    const Op& op = node.op();
    const bool named = op.style() == Op::Style::Function && op.name().find('.') != std::string::npos;
    return op.isOpaque() && named && !isTorchCall(node) && !op.name().starts_with("higher_order.") &&
           !op.name().starts_with("unsupported.");
}

/// As the file calls the arguments; empty if it does not.
std::vector<std::string> argumentNames(const Session::State& state, const Op& op) {
    if (!state.file || state.file->graphs.empty()) return {};
    const auto& names = state.file->graphs.front().argumentNames;
    const auto found = names.find(op.name());
    return found == names.end() ? std::vector<std::string>() : found->second;
}

}  // namespace

Result<std::string> definitionToStart(Session& session, const Place& place, NodeKey key) {
    return guarded([&]() -> Result<std::string> {
        const Session::State& state = session.state();
        CT_TRY(const Snapshot module, state.snapshot(place));
        const auto [graph, path, inside] = findGraph(*module, key);
        const Node* node = graph ? graph->graph().find(inside) : nullptr;
        if (node == nullptr || !node->isCall()) return Error{ErrorCode::NotFound, "the node calls nothing", {}, {}};
        const Op& op = node->op();
        if (const OperatorDefinition* definition = definitionOf(op)) return definition->text;
        if (!wantsDefinition(*node))
            return unsupported(op.name() + " is not an operator that a definition is wanted for", node->name(), {});
        return definitionStart(*graph, *node, argumentNames(state, op));
    });
}

Result<std::vector<std::string>> definitionsToStart(Session& session) {
    return guarded([&]() -> Result<std::vector<std::string>> {
        const Session::State& state = session.state();
        CT_TRY(const Snapshot module, state.snapshot({}));
        std::vector<std::string> out;
        std::set<const Op*> seen;
        for (const Node& node : module->graph().nodes())
            if (node.isCall() && wantsDefinition(node) && seen.insert(&node.op()).second)
                out.push_back(definitionStart(*module, node, argumentNames(state, node.op())));
        return out;
    });
}

Result<std::string> saveOperator(const std::string& text) {
    return guarded([&]() -> Result<std::string> {
        CT_TRY(const auto made, checkOperators(text, "the definition"));
        if (made.size() != 1)
            return invalidInput("there is to be one definition, not " + std::to_string(made.size()), "the definition");
        const std::string home = dataHome();
        if (home.empty()) return Error{ErrorCode::NotFound, "there is no home folder to keep it in", {}, {}};
        const fs::path file = fs::path(home) / "cutaway" / "operators" / (made[0].name + ".txt");
        std::error_code error;
        fs::create_directories(file.parent_path(), error);
        if (error)
            return Error{ErrorCode::ToolFailed, "the folder cannot be made: " + error.message(), file.string(), {}};
        CT_TRY_VOID(replaceFile(file.string(), text));
        return file.string();
    });
}

}  // namespace cutaway
