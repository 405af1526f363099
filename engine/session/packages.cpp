// Compiled packages, and which calls of a run of ours compute the same.
#include "cutaway/packages.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "cutaway/guarded.h"
#include "engine/codegen/cpp_printer.h"
#include "engine/formats/exported.h"
#include "engine/formats/package.h"
#include "engine/formats/package_constants.h"
#include "engine/session/chosen_program.h"
#include "engine/session/output_report.h"
#include "engine/session/session_state.h"

namespace cutaway {
namespace {

/// The files of an archive or a folder, if it is a package.
Result<FileTree> packageFiles(const std::string& path) {
    CT_TRY(const RecognisedFile recognisedFile, RecognisedFile::at(path));
    if (recognisedFile.format() != FileFormat::CompiledPackage)
        return invalidInput(
            "it is not a package of AOTInductor but of the kind: " + std::string(name(recognisedFile.format())), path);
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) return listFolder(path);
    CT_TRY(const ByteSource source, ByteSource::open(path));
    CT_TRY(ZipArchive opened, ZipArchive::open(source, path));
    const auto archive = std::make_shared<const ZipArchive>(std::move(opened));
    FileTree tree = treeOf(*archive);
    tree.read = [archive, read = std::move(tree.read)](const std::string& file) { return read(file); };
    return tree;
}

/// Of a node the operators that it comes from, over all steps of the run.
class Origins {
  public:
    explicit Origins(const CompileTrace& trace) {
        add(*trace.input);
        for (const Step& step : trace.steps) {
            add(*step.before);
            add(*step.after);
        }
    }
    /// Base names: its own, and those of what it was made from; `first`: one that comes from nothing else.
    std::set<std::string> of(NodeId id, std::string* first) const {
        std::set<std::string> names;
        std::set<NodeId> seen;
        std::vector<NodeId> open{id};
        while (!open.empty()) {
            const NodeId next = open.back();
            open.pop_back();
            const auto found = m_origins.find(next);
            if (found == m_origins.end() || !seen.insert(next).second) continue;
            names.insert(found->second.ops.begin(), found->second.ops.end());
            open.insert(open.end(), found->second.from.begin(), found->second.from.end());
            if (found->second.from.empty()) *first = *found->second.ops.begin();
        }
        return names;
    }

  private:
    struct NodeOrigin {
        std::set<std::string> ops;
        std::set<NodeId> from;
    };
    void add(const Module& module) {
        if (!m_seen.insert(&module).second) return;
        for (const Node& node : module.graph().nodes()) {
            if (node.kind() != NodeKind::Call) continue;
            NodeOrigin& nodeOrigin = m_origins[node.id()];
            nodeOrigin.ops.insert(std::string(node.op().baseName()));
            const auto& origin = node.provenance().origin;
            nodeOrigin.from.insert(origin.begin(), origin.end());
        }
    }
    std::set<const Module*> m_seen;
    std::map<NodeId, NodeOrigin> m_origins;
};

/// "native_layer_norm" and "layer_norm", "_softmax" and "softmax" are stages of one.
std::string plainName(std::string_view op) {
    while (op.starts_with('_')) op.remove_prefix(1);
    if (op.starts_with("native_")) op.remove_prefix(7);
    return std::string(op.substr(0, op.find('.')));
}
template <class Names>
std::set<std::string> plainNames(const Names& ops) {
    std::set<std::string> all;
    for (const std::string& op : ops) all.insert(plainName(op));
    return all;
}

/// Views cost nothing and stand in one call or the other as it comes.
bool isFree(std::string_view plain) {
    static const std::set<std::string, std::less<>> kFree{
        "t",      "transpose", "permute",   "view",    "reshape", "unsqueeze",  "squeeze", "expand",
        "clone",  "slice",     "select",    "getitem", "split",   "as_strided", "to",      "convert_element_type",
        "detach", "alias",     "contiguous"};
    return kFree.contains(plain);
}

/// Of a node: all plain names, and what it comes from at first.
struct NodeNames {
    std::set<std::string> all;
    std::string first;
};
/// A call of ours, with what its nodes come from.
struct TracedCall {
    RunCall call;
    std::vector<NodeNames> nodes;
};
TracedCall tracedCall(const ScheduledProgram& program, int position, const Origins& origins) {
    const ScheduledCall& call = program.calls[static_cast<size_t>(position)];
    TracedCall traced;
    RunCall& runCall = traced.call;
    runCall.name = call.kind == CallKind::Kernel ? program.kernels[call.kernel].kernel.name : call.node->name();
    runCall.kind = call.description;
    std::set<std::string> originals;
    for (const NodeId id : call.nodes) {
        runCall.nodes.push_back(nodeKey(0, id));
        std::string first;
        const std::set<std::string> names = origins.of(id, &first);
        traced.nodes.push_back({plainNames(names), std::move(first)});
        const Node* node = program.module->graph().find(id);
        if (!node || node->kind() != NodeKind::Call) continue;
        runCall.ops.emplace_back(node->op().baseName());
        originals.insert(names.begin(), names.end());
    }
    for (const ScheduledValue& value : program.values)
        if (value.definedBy == position)
            if (const TensorType* type = tensorOf(value.key)) runCall.results.push_back(type->text());
    runCall.originals.assign(originals.begin(), originals.end());
    return traced;
}

/// How two calls compare: shared and missing operators, and whether each result of ours is one of theirs.
struct CallOverlap {
    std::vector<std::string> shared, missing, extra;
    bool results = false;
};
CallOverlap overlapOf(const PackagedCall& theirs, const TracedCall& traced) {
    CallOverlap overlap;
    const RunCall& ours = traced.call;
    const std::set<std::string> wanted = plainNames(theirs.ops), have = plainNames(ours.originals);
    for (const std::string& op : wanted)
        if (!isFree(op)) (have.contains(op) ? overlap.shared : overlap.missing).push_back(op);
    for (const NodeNames& node : traced.nodes) {
        const bool known = std::any_of(node.all.begin(), node.all.end(),
                                       [&](const std::string& op) { return wanted.contains(op) || isFree(op); });
        if (!known && !node.all.empty()) overlap.extra.push_back(plainName(node.first));
    }
    std::vector<std::string> written;
    for (const PackagedValue& value : theirs.writes) written.push_back(value.type);
    overlap.results = !ours.results.empty();
    for (const std::string& type : ours.results) {
        const auto found = std::find(written.begin(), written.end(), type);
        overlap.results = overlap.results && found != written.end();
        if (found != written.end()) written.erase(found);
    }
    return overlap;
}

std::string namesOf(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& each : std::set<std::string>(names.begin(), names.end()))
        all += (all.empty() ? "" : ", ") + each;
    return all;
}
std::string reasonOf(const CallOverlap& overlap, CallMatch match) {
    if (match == CallMatch::Same) return "both compute " + namesOf(overlap.shared) + ", with the same results";
    std::string why = "both compute " + namesOf(overlap.shared);
    if (!overlap.missing.empty()) why += "; only theirs " + namesOf(overlap.missing);
    if (!overlap.extra.empty()) why += "; only ours " + namesOf(overlap.extra);
    return overlap.results ? why : why + "; the results are of other types";
}

struct CallCandidate {
    double score = 0, apart = 0;
    int theirs = 0, ours = 0;
    CallOverlap overlap;
};
/// Pairs of calls that share an operator, the likeliest first: same results, shared operators, place in the program.
std::vector<CallCandidate> candidatesOf(const std::vector<PackagedCall>& theirs, const std::vector<TracedCall>& ours) {
    const auto count = [](const auto& list) { return static_cast<double>(list.size()); };
    std::vector<CallCandidate> out;
    for (size_t t = 0; t < theirs.size(); ++t)
        for (size_t o = 0; o < ours.size(); ++o) {
            CallOverlap overlap = overlapOf(theirs[t], ours[o]);
            if (overlap.shared.empty()) continue;
            const double share =
                count(overlap.shared) / (count(overlap.shared) + count(overlap.missing) + count(overlap.extra));
            const double apart = std::abs((static_cast<double>(t) + 1) / (count(theirs) + 1) -
                                          (static_cast<double>(o) + 1) / (count(ours) + 1));
            const double score = share + (overlap.results ? 1 : 0);
            out.push_back({score, apart, static_cast<int>(t), static_cast<int>(o), std::move(overlap)});
        }
    std::stable_sort(out.begin(), out.end(), [](const CallCandidate& a, const CallCandidate& b) {
        return a.score != b.score ? a.score > b.score : a.apart < b.apart;
    });
    return out;
}

/// Each call of theirs with the likeliest of ours that no other has taken, in their order; then those of ours alone.
std::vector<CallPair> pairsOf(size_t theirs, size_t ours, const std::vector<CallCandidate>& candidates) {
    std::vector<const CallCandidate*> chosen(theirs, nullptr);
    std::vector<bool> taken(ours, false);
    for (const CallCandidate& each : candidates) {
        const auto t = static_cast<size_t>(each.theirs), o = static_cast<size_t>(each.ours);
        if (chosen[t] || taken[o]) continue;
        chosen[t] = &each;
        taken[o] = true;
    }
    std::vector<CallPair> pairs;
    for (size_t t = 0; t < theirs; ++t) {
        CallPair pair{CallMatch::Theirs, static_cast<int>(t), -1, "no call of ours computes it"};
        if (chosen[t]) {
            const CallOverlap& overlap = chosen[t]->overlap;
            const bool same = overlap.missing.empty() && overlap.extra.empty() && overlap.results;
            pair.ours = chosen[t]->ours;
            pair.match = same ? CallMatch::Same : CallMatch::Part;
            pair.why = reasonOf(overlap, pair.match);
        }
        pairs.push_back(std::move(pair));
    }
    for (size_t o = 0; o < ours; ++o)
        if (!taken[o]) pairs.push_back({CallMatch::Ours, -1, static_cast<int>(o), "no call of theirs computes it"});
    return pairs;
}

}  // namespace

bool isPackage(const std::string& file) {
    std::error_code none;
    if (std::filesystem::is_directory(file, none)) return false;
    const auto archive = guarded([&]() -> Result<bool> {
        CT_TRY(const ByteSource source, ByteSource::open(file));
        CT_TRY(const std::shared_ptr<Storage> start, source.readStart(4));
        if (!textOf(*start).starts_with("PK")) return false;
        CT_TRY(const RecognisedFile recognisedFile, RecognisedFile::of(source, file));
        return recognisedFile.format() == FileFormat::CompiledPackage;
    });
    return archive && *archive;
}

Result<CompiledPackage> openPackage(const std::string& path) {
    return guarded([&]() -> Result<CompiledPackage> {
        CT_TRY(const FileTree tree, packageFiles(path));
        return readPackage(tree, path);
    });
}

Result<std::string> packagedText(const std::string& path, const std::string& file) {
    return guarded([&]() -> Result<std::string> {
        CT_TRY(const FileTree tree, packageFiles(path));
        std::vector<std::string> found;
        for (const std::string& each : tree.files)
            if (each == file || (!file.empty() && each.ends_with(file))) found.push_back(each);
        if (std::find(found.begin(), found.end(), file) != found.end()) found = {file};
        if (found.size() != 1)
            return Error{ErrorCode::NotFound,
                         found.empty() ? "the package has no file '" + file + "'"
                                       : "several files end in '" + file + "': " + namesOf(found),
                         path,
                         {"cutaway-cli package lists its files"}};
        CT_TRY(const ByteSource source, tree.read(found[0]));
        CT_TRY(const std::shared_ptr<Storage> text, source.readText(found[0]));
        if (textOf(*text).find('\0') != std::string_view::npos) return invalidInput("it is not text", found[0]);
        return std::string(textOf(*text));
    });
}

namespace {

/// Its first rows and columns, those of the first matrix of more dims.
std::string firstNumbers(const Tensor& tensor) {
    constexpr int64_t kRows = 24, kColumns = 8;
    const Tensor plain = tensor.contiguous();
    const Dims& sizes = tensor.sizes();
    const int64_t columns = sizes.empty() ? 1 : sizes.back(), rows = sizes.size() < 2 ? 1 : sizes[sizes.size() - 2];
    std::string out;
    char digits[32];
    for (int64_t row = 0; row < std::min(rows, kRows); ++row) {
        for (int64_t column = 0; column < std::min(columns, kColumns); ++column) {
            const double number = toDouble(plain.item(row * columns + column));
            std::snprintf(digits, sizeof digits, "%12.6g", number);
            out += digits;
        }
        out += columns > kColumns ? " ...\n" : "\n";
    }
    if (tensor.numel() > rows * columns || rows > kRows) out += "...\n";
    return out;
}

std::string constantText(const PackagedConstant& constant, const Tensor& tensor) {
    const OutputReport report = reportOf(constant.name, tensor, nullptr);
    char range[96];
    std::snprintf(range, sizeof range, "from %.6g to %.6g, mean %.6g", report.minimum, report.maximum, report.mean);
    return (constant.original.empty() ? constant.name : constant.original) + ": " + report.type + ", " +
           (tensor.numel() == 0 ? std::string("no numbers") : std::string(range)) +
           (report.nonFinite > 0 ? ", " + std::to_string(report.nonFinite) + " not finite" : "") + "\n" +
           (tensor.numel() == 0 ? std::string() : firstNumbers(tensor));
}

}  // namespace

Result<std::string> packagedConstant(const std::string& path, const std::string& model, const std::string& constant) {
    return guarded([&]() -> Result<std::string> {
        CT_TRY(const FileTree tree, packageFiles(path));
        const CompiledPackage package = readPackage(tree, path);
        CT_TRY(const PackagedModel* const found, modelOfPackage(package, model));
        for (size_t i = 0; i < found->constants.size(); ++i) {
            const PackagedConstant& one = found->constants[i];
            if (one.name != constant && one.original != constant) continue;
            CT_TRY(const Tensor tensor, packagedTensor(tree, *found, i));
            return constantText(one, tensor);
        }
        return Error{ErrorCode::NotFound,
                     "the model has no constant '" + constant + "'",
                     path,
                     {"cutaway-cli package lists them"}};
    });
}

Result<const PackagedModel*> modelOfPackage(const CompiledPackage& package, const std::string& name) {
    for (const PackagedModel& model : package.models)
        if (model.name == name || (name.empty() && package.models.size() == 1)) return &model;
    std::string names;
    for (const PackagedModel& model : package.models) names += (names.empty() ? "" : ", ") + model.name;
    return Error{ErrorCode::NotFound,
                 name.empty() ? "the package holds several models" : "the package has no model '" + name + "'",
                 package.path,
                 {"--model takes one of: " + names}};
}

Result<PackageComparison> comparePackage(Session& session, RunId id, const PackagedModel& model,
                                         const Progress& progress) {
    return guarded([&]() -> Result<PackageComparison> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        if (run->trace.isSplit())
            return unsupported("a package is compared with a run for inference, and this one is for training", {},
                               {"compile the model for inference"});
        CT_TRY_VOID(checkLowered(run->trace));
        CT_TRY(const auto chosen, chosenProgram(*run, {}, progress));
        const ScheduledProgram& program = chosen->program->graphs.front();
        const Origins origins(run->trace);
        const bool cpu = run->trace.request.target == Target::Cpu;
        std::vector<TracedCall> traced;
        for (size_t i = 0; i < program.calls.size(); ++i) {
            const ScheduledCall& call = program.calls[i];
            traced.push_back(tracedCall(program, static_cast<int>(i), origins));
            if (cpu && call.kind == CallKind::Kernel)
                traced.back().call.source = printCpp(chosen->program->kernels[call.kernel]).source;
        }
        PackageComparison all;
        all.pairs = pairsOf(model.calls.size(), traced.size(), candidatesOf(model.calls, traced));
        all.same = static_cast<int>(std::count_if(all.pairs.begin(), all.pairs.end(),
                                                  [](const CallPair& pair) { return pair.match == CallMatch::Same; }));
        for (TracedCall& one : traced) all.ours.push_back(std::move(one.call));
        return all;
    });
}

}  // namespace cutaway
