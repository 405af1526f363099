#include "engine/session/run_inputs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/support/characters.h"

namespace cutaway {
namespace {

bool isUserInput(const Module& module, size_t position) {
    return position >= module.inputs.size() || module.inputs[position].isGiven();
}

/// Names of the user inputs, in order: those of the nodes, and what the file itself calls them.
NameSchemes userInputNames(const Module& module) {
    NameSchemes names(2);
    const auto placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        if (!isUserInput(module, i)) continue;
        const std::string& target = placeholders[i]->target();
        names[0].push_back(placeholders[i]->name());
        names[1].push_back(target.substr(std::min(target.find_first_not_of('*'), target.size())));
    }
    return names;
}

/// A forward tangent by its own name, and by that of what it is the tangent of.
struct TangentInput {
    std::string name, ofInput;
};
std::vector<TangentInput> tangentInputs(const Module& run) {
    const auto placeholders = run.graph().placeholders();
    std::vector<TangentInput> tangents;
    for (size_t i = 0; i < std::min(placeholders.size(), run.inputs.size()); ++i)
        if (run.inputs[i].kind == InputSpec::Kind::ForwardTangent)
            tangents.push_back({placeholders[i]->name(), run.inputs[i].target + ".tangent"});
    return tangents;
}

/// Numbers inside names count as numbers: t2 before t10.
bool naturallyBefore(std::string_view a, std::string_view b) {
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    const auto takeNumber = [&](std::string_view& text) {
        const size_t zeros = std::min(text.find_first_not_of('0'), text.size());
        size_t end = zeros;
        while (end < text.size() && isDigit(text[end])) ++end;
        const std::string_view digits = text.substr(zeros, end - zeros);
        text.remove_prefix(end);
        return digits;
    };
    const std::string_view wholeA = a, wholeB = b;
    while (!a.empty() && !b.empty()) {
        if (isDigit(a[0]) && isDigit(b[0])) {
            const std::string_view left = takeNumber(a), right = takeNumber(b);
            if (left.size() != right.size()) return left.size() < right.size();
            if (left != right) return left < right;
            continue;
        }
        if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    return a.empty() == b.empty() ? wholeA < wholeB : a.empty();
}

std::string listed(const std::vector<std::string>& names) {
    constexpr size_t kShown = 20;
    std::string out;
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += (i > 0 ? ", " : "") + visibleText(names[i]);
    return names.size() > kShown ? out + ", and " + std::to_string(names.size() - kShown) + " more" : out;
}

/// The naming scheme to which most of the file's names belong, and how many names do.
std::pair<const std::vector<std::string>*, size_t> nearestScheme(const std::map<std::string, Tensor>& byName,
                                                                 const NameSchemes& schemes) {
    std::pair<const std::vector<std::string>*, size_t> best{nullptr, 0};
    for (const auto& names : schemes) {
        const std::set<std::string> known(names.begin(), names.end());
        const auto matching = static_cast<size_t>(
            std::count_if(byName.begin(), byName.end(), [&](const auto& one) { return known.contains(one.first); }));
        if (matching > best.second) best = {&names, matching};
    }
    return best;
}

/// "in.safetensors", and a remark where the names of its tensors say nothing.
std::string sourceText(const std::string& path, const PickedTensors& found, const std::string& what) {
    if (found.byName || found.tensors.size() < 2) return path;
    return path + " in the order of its names, none of which is an " + what + "'s";
}

}  // namespace

Result<PickedTensors> pickTensors(std::vector<std::pair<std::string, Tensor>> tensors, const NameSchemes& schemes,
                                  const std::string& what, const std::string& path) {
    std::map<std::string, Tensor> byName(std::make_move_iterator(tensors.begin()),
                                         std::make_move_iterator(tensors.end()));
    PickedTensors out;
    const auto [names, matching] = nearestScheme(byName, schemes);
    if (names == nullptr) {
        std::vector<std::pair<std::string, Tensor>> ordered(byName.begin(), byName.end());
        std::sort(ordered.begin(), ordered.end(),
                  [](const auto& a, const auto& b) { return naturallyBefore(a.first, b.first); });
        for (auto& [name, tensor] : ordered) out.tensors.push_back(std::move(tensor));
        return out;
    }
    const std::vector<std::string> notes = {
        "its " + what + "s are: " + listed(*names),
        "a file of which no name is an " + what + "'s is read in the order of its names"};
    if (matching < byName.size())
        for (const auto& [name, tensor] : byName)
            if (std::find(names->begin(), names->end(), name) == names->end())
                return Error{ErrorCode::InvalidInput, "the graph has no " + what + " '" + visibleText(name) + "'", path,
                             notes};
    out.byName = true;
    std::string missing;
    for (const std::string& name : *names) {
        const auto found = byName.find(name);
        if (found == byName.end()) missing = missing.empty() ? name : missing;
        else if (!missing.empty())
            return Error{ErrorCode::InvalidInput,
                         "the file has no tensor for " + what + " '" + visibleText(missing) + "'", path, notes};
        else out.tensors.push_back(found->second);
    }
    return out;
}

namespace {

/// Loads the tensors' data now, so that a file that lacks some is an error before anything runs.
Result<RunInputs> loaded(std::vector<Tensor> tensors, std::string from) {
    for (const Tensor& tensor : tensors)
        if (tensor.defined()) CT_TRY_VOID(tensor.storage()->load());
    return RunInputs{std::move(tensors), std::move(from)};
}

}  // namespace

namespace {

Result<RunInputs> chooseWithout(const Module& module, const std::vector<Tensor>& samples,
                                const std::string& noSamples) {
    if (!samples.empty()) return loaded(samples, "sample inputs of the file");
    CT_TRY(std::vector<Tensor> tensors, randomInputs(module, 0));
    return RunInputs{std::move(tensors), "random, seed 0" + (noSamples.empty() ? "" : "; " + noSamples)};
}

/// Adds the tangents: those that the file lacks are zero if it has any, else all are random.
Result<void> addTangents(const Module& run, const std::vector<bool>& named, size_t given, RunInputs& inputs) {
    const size_t count = named.size();
    if (count == 0 || inputs.user.size() < given || inputs.user.size() >= given + count) return {};
    CT_TRY(const std::vector<Tensor> random, randomInputs(run, 0));
    const bool any = std::find(named.begin(), named.end(), true) != named.end();
    std::vector<Tensor> all(inputs.user.begin(), inputs.user.begin() + static_cast<std::ptrdiff_t>(given));
    size_t next = given, missing = 0;
    for (size_t k = 0; k < count; ++k) {
        const Tensor& made = random[random.size() - count + k];
        if (named[k] && next < inputs.user.size()) all.push_back(inputs.user[next++]);
        else {
            all.push_back(any ? Tensor::zeros(made.dtype(), made.sizes()) : made);
            ++missing;
        }
    }
    inputs.user = std::move(all);
    inputs.from += "; " + (missing == 1 ? "1 tangent" : std::to_string(missing) + " tangents") +
                   (any ? " that it lacks zero" : " random, seed 0");
    return {};
}

}  // namespace

Result<RunInputs> chooseInputs(const Module& module, const std::vector<Tensor>& samples, const std::string& path,
                               const std::string& noSamples, const Module* run) {
    NameSchemes names = userInputNames(module);
    const size_t given = names[0].size();
    const std::vector<TangentInput> tangents = run ? tangentInputs(*run) : std::vector<TangentInput>();
    std::vector<bool> named(tangents.size(), false);
    RunInputs inputs;
    if (path.empty()) {
        CT_TRY(inputs, chooseWithout(module, samples, noSamples));
    } else {
        CT_TRY(SafeTensors file, readSafeTensors(path));
        for (size_t k = 0; k < tangents.size(); ++k) {
            named[k] = std::any_of(file.tensors.begin(), file.tensors.end(), [&](const auto& one) {
                return one.first == tangents[k].name || one.first == tangents[k].ofInput;
            });
            if (!named[k]) continue;
            names[0].push_back(tangents[k].name);
            names[1].push_back(tangents[k].ofInput);
        }
        CT_TRY(PickedTensors found, pickTensors(std::move(file.tensors), names, "input", path));
        std::string from = sourceText(path, found, "input");
        CT_TRY(inputs, loaded(std::move(found.tensors), std::move(from)));
    }
    if (run) CT_TRY_VOID(addTangents(*run, named, given, inputs));
    return inputs;
}

std::string outputName(const Module& module, size_t position) {
    const std::vector<Argument> values = module.graph().outputs();
    size_t of = position;
    std::string ending;
    if (position < module.outputs.size() && module.outputs[position].kind == OutputSpec::Kind::ForwardTangent) {
        const std::string& target = module.outputs[position].target;
        std::from_chars(target.data(), target.data() + target.size(), of);
        ending = ".tangent";
    }
    if (const Node* node = of < values.size() ? values[of].node() : nullptr) return node->name() + ending;
    const std::vector<size_t> results = userOutputs(module);
    const auto number = std::find(results.begin(), results.end(), of) - results.begin();
    return "output_" + std::to_string(number) + ending;
}

std::vector<size_t> userOutputs(const Module& module) {
    std::vector<size_t> positions;
    const size_t count = module.graph().outputs().size();
    for (size_t i = 0; i < count; ++i)
        if (i >= module.outputs.size() || module.outputs[i].kind == OutputSpec::Kind::UserOutput ||
            module.outputs[i].kind == OutputSpec::Kind::Loss ||
            module.outputs[i].kind == OutputSpec::Kind::ForwardTangent)
            positions.push_back(i);
    return positions;
}

Result<RunInputs> readExpected(const Module& opened, const Module& run, const std::string& path,
                               const std::set<std::string>& others, std::map<std::string, Tensor>& found) {
    const std::vector<size_t> positions = userOutputs(run), before = userOutputs(opened);
    const std::vector<Argument> returned = run.graph().outputs();
    // None and text, which no file holds.
    const auto isNone = [&](size_t i) {
        return returned[positions[i]].isNone() || returned[positions[i]].get<std::string>() != nullptr;
    };
    NameSchemes names(3);
    for (size_t i = 0; i < positions.size(); ++i) {
        if (isNone(i)) continue;
        names[1].push_back(outputName(run, positions[i]));
        // Passes may add results behind those of the opened graph: gradients, or tangents in the results' order.
        const bool tangent = i >= before.size() && positions[i] < run.outputs.size() &&
                             run.outputs[positions[i]].kind == OutputSpec::Kind::ForwardTangent;
        const std::string ending = tangent ? ".tangent" : "";
        const size_t of = tangent ? i - before.size() : i;
        names[0].push_back(of < before.size() ? outputName(opened, before[of]) + ending : names[1].back());
        names[2].push_back("output_" + std::to_string(of) + ending);
    }
    CT_TRY(SafeTensors file, readSafeTensors(path));
    std::set<std::string> results;
    for (const std::vector<std::string>& scheme : names) results.insert(scheme.begin(), scheme.end());
    std::erase_if(file.tensors, [&](const auto& one) {
        return others.contains(one.first) && !results.contains(one.first) && found.emplace(one).second;
    });
    CT_TRY(PickedTensors picked, pickTensors(std::move(file.tensors), names, "output", path));
    if (picked.tensors.size() != names[1].size())
        return invalidInput("the file has " + std::to_string(picked.tensors.size()) + " tensors, the model returns " +
                                std::to_string(names[1].size()),
                            path);
    for (size_t i = 0; i < positions.size(); ++i)
        if (isNone(i)) picked.tensors.emplace(picked.tensors.begin() + static_cast<std::ptrdiff_t>(i));
    std::string from = sourceText(path, picked, "output");
    return RunInputs{std::move(picked.tensors), std::move(from)};
}

Result<Snapshot> withValues(const Module& module, const std::string& path, std::vector<Tensor>& user) {
    CT_TRY(const SafeTensors file, readSafeTensors(path));
    auto fixed = std::make_shared<Module>(module);
    Graph& graph = fixed->graph();
    const auto placeholders = graph.placeholders();
    Node* after = placeholders.empty() ? graph.first() : placeholders.back()->next();
    for (const auto& [name, tensor] : file.tensors) {
        Node* node = graph.findByName(name);
        if (!node || node->kind() != NodeKind::Call)
            return Error{ErrorCode::InvalidInput,
                         "the graph that runs has no node '" + name + "' to give a value to",
                         path,
                         {"cutaway-cli compile MODEL --dump DIR writes that graph; a pass may have replaced the node"}};
        const TensorType* type = node->type().tensor();
        const TensorType given = TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes()));
        if (!type || type->dtype != given.dtype || (freeSymbols(module).empty() && type->sizes != given.sizes))
            return invalidInput(
                "node '" + name + "' is " + node->type().text() + ", its value in the file is " + given.text(), path);
        Node& input = graph.placeholder(name, node->type(), after);
        graph.replaceUses(*node, input);
        if (after == node) after = node->next();
        graph.erase(*node);
        fixed->inputs.resize(graph.placeholders().size());
        user.push_back(tensor);
    }
    return Snapshot(std::move(fixed));
}

}  // namespace cutaway
