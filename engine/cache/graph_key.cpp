#include "engine/cache/graph_key.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

#include "cutaway/words.h"
#include "engine/text/literal.h"

namespace cutaway {
namespace {

/// Text that stands for one value of a list and no other.
std::string framed(const std::string& text) { return std::to_string(text.size()) + ":" + text; }

/// The arguments of a graph's nodes with numbers in place of names.
class Canonical {
  public:
    std::string of(const Module& module) {
        std::unordered_map<const Node*, size_t> numbers;
        std::string all;
        for (const Node& node : module.graph().nodes()) {
            all += std::to_string(static_cast<int>(node.kind())) + " ";
            if (node.isCall()) all += framed(node.op().name()) + std::to_string(static_cast<int>(node.op().style()));
            else if (!node.isOutput()) all += framed(node.kind() == NodeKind::GetAttr ? node.target() : "");
            for (const Argument& argument : node.args()) all += "," + textOf(argument, numbers);
            for (const auto& [key, argument] : node.kwargs()) all += "," + key + "=" + textOf(argument, numbers);
            all += " -> " + (node.isOutput() ? std::string() : typeOf(node.type())) + "\n";
            numbers.emplace(&node, numbers.size());
        }
        for (const auto& [name, body] : module.subgraphs) all += "body " + framed(name) + framed(of(*body));
        return all;
    }

  private:
    static std::string typeOf(const ValueType& type) {
        if (const TensorType* tensor = type.tensor())
            return tensor->fullText() + "+" + tensor->offset.text() + (tensor->requiresGrad ? " grad" : "") +
                   std::to_string(static_cast<int>(tensor->layout));
        if (const TupleType* tuple = type.tuple()) {
            std::string all = "(";
            for (const ValueType& item : *tuple) all += typeOf(item) + ";";
            return all + ")";
        }
        return type.text();
    }
    std::string textOf(const Argument& argument, const std::unordered_map<const Node*, size_t>& numbers) {
        struct Visit {
            Canonical& self;
            const std::unordered_map<const Node*, size_t>& numbers;
            std::string operator()(std::monostate) const { return "None"; }
            std::string operator()(Node* node) const { return "%" + std::to_string(numbers.at(node)); }
            std::string operator()(bool value) const { return value ? "True" : "False"; }
            std::string operator()(int64_t value) const { return std::to_string(value); }
            std::string operator()(double value) const { return fxtext::realText(value); }
            std::string operator()(std::complex<double> value) const { return fxtext::complexText(value); }
            std::string operator()(const std::string& value) const { return "'" + framed(value); }
            std::string operator()(DType value) const { return "dtype " + std::to_string(static_cast<int>(value)); }
            std::string operator()(const Device& value) const { return value.text(); }
            std::string operator()(Layout value) const { return "layout " + std::to_string(static_cast<int>(value)); }
            std::string operator()(MemoryFormat value) const {
                return "format " + std::to_string(static_cast<int>(value));
            }
            std::string operator()(const Expr& value) const { return "expr " + SymInt(value).text(); }
            std::string operator()(const SubgraphRef& value) const { return "body " + value.name; }
            std::string operator()(const OpRef& value) const { return "op " + value.op->name(); }
            std::string operator()(const Ellipsis&) const { return "..."; }
            std::string operator()(const LostTensor& value) const { return "lost " + framed(value.text); }
            std::string operator()(const std::shared_ptr<const ArgumentSlice>& value) const {
                return "slice(" + self.textOf(value->start, numbers) + ":" + self.textOf(value->stop, numbers) + ":" +
                       self.textOf(value->step, numbers) + ")";
            }
            std::string operator()(const std::shared_ptr<const ArgumentDict>& value) const {
                std::string all = "{";
                for (const auto& [key, item] : value->items) all += framed(key) + self.textOf(item, numbers) + ",";
                return all + "}";
            }
            std::string operator()(const std::shared_ptr<const ArgumentList>& value) const {
                std::string all = "[";
                for (const Argument& item : value->items) all += self.textOf(item, numbers) + ",";
                return all + "]";
            }
        };
        return std::visit(Visit{*this, numbers}, argument.kind());
    }
};

std::string metaOf(const Tensor& tensor) {
    std::string text(info(tensor.dtype()).abbreviation);
    for (const Dims* dims : {&tensor.sizes(), &tensor.strides()}) {
        text += '[';
        for (const int64_t dim : *dims) text += std::to_string(dim) + ",";
        text += ']';
    }
    return text + "+" + std::to_string(tensor.offset());
}

std::string oneLine(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::replace(text.begin(), text.end(), '\t', ' ');
    constexpr size_t kMost = 160;
    return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

}  // namespace

Ingredient ingredient(std::string name, const std::string& all, std::string text) {
    return {std::move(name), Hasher().add(std::string_view(all)).finish().hex(), oneLine(std::move(text))};
}

std::string keyOf(const std::vector<Ingredient>& ingredients) {
    std::string all;
    for (const Ingredient& one : ingredients) all += one.name + " " + one.digest + "\n";
    return Hasher().add(std::string_view(all)).finish().hex();
}

std::vector<Ingredient> graphIngredients(const Module& module, const std::string& values) {
    std::string ports, symbols, shownSymbols, constants;
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        ports += framed(placeholders[i]->name()) + framed(placeholders[i]->target());
        if (i >= module.inputs.size()) continue;
        const InputSpec& input = module.inputs[i];
        ports += std::to_string(static_cast<int>(input.kind)) + framed(input.target) + (input.persistent ? "p" : "");
    }
    const std::vector<Argument> returned = module.graph().outputs();
    for (size_t i = 0; i < returned.size(); ++i) {
        ports += "out " + (returned[i].node() ? framed(returned[i].node()->name()) : std::string("literal"));
        if (i < module.outputs.size())
            ports += std::to_string(static_cast<int>(module.outputs[i].kind)) + framed(module.outputs[i].target);
    }
    for (const auto& [name, info] : module.symbols) {
        std::string own = name;
        for (const auto* bound : {&info.lower, &info.upper, &info.hint})
            own += " " + (*bound ? std::to_string(**bound) : std::string("-"));
        symbols += own + "\n";
        shownSymbols += (shownSymbols.empty() ? "" : "; ") + own;
    }
    std::map<const Storage*, size_t> memories;
    int64_t bytes = 0;
    for (const auto& [name, tensor] : module.tensors) {
        constants += framed(name) + (tensor.defined() ? metaOf(tensor) : std::string("none"));
        if (!tensor.defined()) continue;
        const auto slot = memories.emplace(tensor.storage().get(), memories.size());
        if (slot.second) bytes += static_cast<int64_t>(tensor.storage()->size());
        constants += "@" + std::to_string(slot.first->second) + "\n";
    }
    std::string stage = module.origin.stage;
    return {
        ingredient("graph", Canonical().of(module) + "stage " + stage,
                   std::to_string(module.graph().size()) + " nodes"),
        ingredient("inputs and outputs", ports,
                   std::to_string(placeholders.size()) + " inputs, " + std::to_string(returned.size()) + " outputs"),
        ingredient("size symbols", symbols, shownSymbols),
        ingredient("constants", constants + values,
                   std::to_string(module.tensors.size()) + " tensors, " + bytesText(bytes) + ", values " +
                       values.substr(0, 8))};
}

std::vector<Ingredient> environmentIngredients(const CompileEnvironment& now) {
    const std::string threads = std::to_string(now.threads);
    return {ingredient("engine", now.engine, now.version + " " + now.engine.substr(0, 8)),
            ingredient("build", now.build, now.build),
            ingredient("compiler and processor", now.compiler, now.compiler.substr(0, now.compiler.find('\n'))),
            ingredient("number of threads", threads, threads),
            ingredient("environment", now.environment, now.environment)};
}

Result<std::string> constantValues(const Module& module) {
    Hasher hash;
    std::set<const Storage*> known;
    for (const auto& [name, tensor] : module.tensors) {
        if (!tensor.defined() || !known.insert(tensor.storage().get()).second) continue;
        CT_TRY(const auto storage, Storage::forOneUse(tensor.storage()));
        CT_TRY_VOID(storage->load());
        hash.add(static_cast<uint64_t>(storage->size()));
        hash.addBytes(std::as_const(*storage).data(), storage->size());
    }
    return hash.finish().hex();
}

size_t differenceCount(const std::vector<Ingredient>& a, const std::vector<Ingredient>& b) {
    std::map<std::string, std::string> digests;
    for (const Ingredient& one : b) digests[one.name] = one.digest;
    size_t count = 0;
    for (const Ingredient& one : a) count += digests[one.name] != one.digest;
    return count;
}

std::string differenceText(const std::vector<Ingredient>& wanted, const std::vector<Ingredient>& there) {
    std::string all;
    for (const Ingredient& one : wanted) {
        const auto other =
            std::find_if(there.begin(), there.end(), [&](const Ingredient& each) { return each.name == one.name; });
        if (other != there.end() && other->digest == one.digest) continue;
        const auto shown = [](const std::string& text) { return text.empty() ? std::string("(none)") : text; };
        all += (all.empty() ? "" : "; ") + std::string("the ") + one.name +
               (one.name.ends_with('s') ? " are others" : " is another");
        const std::string before = other == there.end() ? std::string() : other->text;
        if (before != one.text) all += ": " + shown(one.text) + ", not " + shown(before);
    }
    return all;
}

std::string ingredientsText(const std::vector<Ingredient>& ingredients) {
    std::string text;
    for (const Ingredient& one : ingredients) text += one.name + "\t" + one.digest + "\t" + one.text + "\n";
    return text;
}

std::vector<Ingredient> parseIngredients(const std::string& text) {
    std::vector<Ingredient> ingredients;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find('\t'), second = line.find('\t', first + 1);
        if (second == std::string::npos) continue;
        ingredients.push_back(
            {line.substr(0, first), line.substr(first + 1, second - first - 1), line.substr(second + 1)});
    }
    return ingredients;
}

}  // namespace cutaway
