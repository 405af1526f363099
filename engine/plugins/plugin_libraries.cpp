#include "engine/plugins/plugin_libraries.h"

#include <map>
#include <set>
#include <sstream>

#include "cutaway/words.h"
#include "engine/libraries/plugin_rows.h"
#include "engine/runtime/cpu/plugin_library.h"
#include "engine/runtime/libraries/owned_call.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr const char* kRule = "call_library";
constexpr size_t kMostSaid = 4096;
constexpr int64_t kUnknown = -1;  // a size that a run makes known

std::set<std::string> operatorsOf(const PluginItem& library) {
    std::set<std::string> out;
    std::istringstream names(library.operators);
    for (std::string name; names >> name;) out.insert(name);
    return out;
}

int64_t knownOr(const SymInt& size) { return size.isInt() ? size.value() : kUnknown; }

/// The argument without numbers that only a run knows.
Argument plain(const Argument& arg) {
    if (const Node* node = arg.node()) {
        const SymType* const number = node->type().sym();
        return number != nullptr ? Argument(kUnknown) : arg;
    }
    if (arg.get<Expr>()) return Argument(kUnknown);
    const auto* list = arg.get<ArgumentList>();
    if (list == nullptr) return arg;
    ArgumentList out{{}, list->tuple};
    for (const Argument& item : list->items) out.items.push_back(plain(item));
    return out;
}

CallTensor tensorOf(const TensorType& type) {
    CallTensor out;
    out.dtype = type.dtype;
    for (const SymInt& size : type.sizes) out.sizes.push_back(knownOr(size));
    for (const SymInt& stride : type.strides) out.strides.push_back(knownOr(stride));
    return out;
}

/// What no library of a plugin is asked about.
std::string whyNotAsked(const Node& call) {
    const Op& op = call.op();
    if (op.isOpaque() || op.schema() == nullptr) return "Cutaway does not know what the operator computes";
    if (op.mutates()) return "it writes to an operand";
    if (call.is(Tag::View)) return "its result shares memory with an operand";
    if (call.is(Tag::Random)) return "it draws random numbers";
    if (call.is(Tag::DataDependent)) return "the sizes of its results follow from data";
    const auto isTensor = [](const ValueType& type) {
        return type.tensor() != nullptr && type.tensor()->dtype <= DType::U64;
    };
    const TupleType* const several = call.type().tuple();
    if (several ? !std::all_of(several->begin(), several->end(), isTensor) : !isTensor(call.type()))
        return "a result is not a tensor, or of a dtype that plugins do not get";
    for (const Node* input : call.inputs())
        if (!isTensor(input->type()) && input->type().sym() == nullptr)
            return "'" + input->name() + "' is not a tensor, or of a dtype that plugins do not get";
    return {};
}

/// The call as its library is asked about it.
PluginCall questionOf(const PluginLibrary& library, const Node& call) {
    std::vector<std::string> params;
    for (const Param& param : call.op().schema()->params) params.push_back(param.name);
    std::vector<Argument> args;
    for (const Argument& arg : call.args()) args.push_back(plain(arg));
    std::vector<CallTensor> results;
    if (const TupleType* several = call.type().tuple())
        for (const ValueType& type : *several) results.push_back(tensorOf(*type.tensor()));
    else results.push_back(tensorOf(*call.type().tensor()));
    const OwnedCall owned(
        call.op().name(), params, args, [](const Node& node) { return tensorOf(*node.type().tensor()); }, results);
    std::vector<SharedPlace> places;
    for (const Node* operand : owned.operands()) {
        const CallTensor tensor = tensorOf(*operand->type().tensor());
        places.push_back({'-', 0, 0, passedStrides(tensor.sizes, tensor.strides)});
    }
    for (const CallTensor& result : results) {
        const bool known = std::find(result.sizes.begin(), result.sizes.end(), kUnknown) == result.sizes.end();
        places.push_back({'-', 0, 0, known ? contiguousStrides(result.sizes) : result.strides});
    }
    return pluginCall(library, "takes", owned.call(), 1, places);
}

Result<std::string> answerOf(const PluginItemRef& found, const PluginCall& question, const Stopped& stopped) {
    CT_TRY(const PluginReply reply, found.plugin->process->call(question, stopped));
    if (reply.yes) return std::string();
    if (reply.said.size() >= 2 && reply.said[0] == "say" && !reply.said[1].empty())
        return visibleText(reply.said[1].substr(0, kMostSaid));
    return "the library does not take it, and does not say why";
}

}  // namespace

PluginLibrary describedItem(const PluginItemRef& found) {
    const PluginInfo& info = found.plugin->info;
    PluginLibrary library{info.name + "." + found.item->name,
                          found.plugin->title() + ", " + found.item->kind + " " + found.item->name,
                          info.file,
                          info.hash,
                          found.plugin->process->stamp(),
                          found.index,
                          info.startsProcesses};
    return library;
}

Result<std::string> whyNotTaken(const PluginItemRef& found, const Node& call, const Stopped& stopped) {
    if (std::string why = whyNotAsked(call); !why.empty()) return why;
    return answerOf(found, questionOf(describedItem(found), call), stopped);
}

std::function<Result<bool>(Module&, Rewriter&)> libraryFunction(const PluginItemRef& found) {
    struct Refusals {
        std::mutex mutex;
        std::map<std::vector<std::string>, std::string> byCall;  // layers that are alike are asked about once
    };
    const auto refusals = std::make_shared<Refusals>();
    const PluginLibrary library = describedItem(found);
    const std::set<std::string> ops = operatorsOf(*found.item);
    const auto whyNot = [=](const Node& call, const Stopped& stopped) -> Result<std::string> {
        if (std::string why = whyNotAsked(call); !why.empty()) return why;
        const PluginCall question = questionOf(library, call);
        std::vector<std::string> key = question.settings;
        key.push_back(question.file);
        {
            const std::lock_guard lock(refusals->mutex);
            if (const auto it = refusals->byCall.find(key); it != refusals->byCall.end()) return it->second;
        }
        CT_TRY(std::string why, answerOf(found, question, stopped));
        const std::lock_guard lock(refusals->mutex);
        return refusals->byCall.emplace(std::move(key), std::move(why)).first->second;
    };
    return [=](Module& module, Rewriter& rewriter) -> Result<bool> {
        const std::shared_ptr<Schedule> schedule = copyOfSchedule(module, rewriter.request());
        for (const Node& node : module.graph().nodes()) {
            if (!node.isCall() || schedule->libraries.contains(node.id()) || !ops.contains(node.op().name())) continue;
            if (schedule->target.device.type != DeviceType::Cpu) {
                rewriter.refuse(kRule, node, library.title + " computes on the CPU");
                continue;
            }
            CT_TRY(const std::string why, whyNot(node, [&] { return rewriter.cancelled(); }));
            if (!why.empty()) {
                rewriter.refuse(kRule, node, library.title + ": " + why);
                continue;
            }
            const LibraryRow& row = pluginRow(library, node.op().name());
            const Go go =
                rewriter.begin(kRule, node, "a library computes it: " + libraryText(row, node, schedule->target));
            if (go == Go::Stop) break;
            if (go == Go::Yes) schedule->libraries.emplace(node.id(), &row);
        }
        if (rewriter.changed()) module.plan = schedule;
        return rewriter.changed();
    };
}

}  // namespace cutaway
