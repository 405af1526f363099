#include "tests/engine/lowering_samples.h"

#include <algorithm>
#include <set>

#include "engine/ops/build.h"
#include "engine/support/check.h"
#include "tests/support/call_text.h"

namespace cutaway::testing {
namespace {

constexpr int64_t kMostElements = 1 << 15;

template <class Visit>
void forEachTensor(std::vector<CallItem>& items, Visit&& visit) {
    for (CallItem& item : items) {
        if (item.kind == CallItem::Kind::Tensor) visit(item);
        if (item.kind == CallItem::Kind::List) forEachTensor(item.items, visit);
    }
}
/// Strides in the order that they had, without gaps between the dims that had none of size 0.
void restride(CallItem& tensor) {
    if (!tensor.strided) return;
    std::vector<size_t> order(tensor.sizes.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return tensor.strides[a] < tensor.strides[b]; });
    int64_t next = 1;
    for (const size_t d : order) {
        if (tensor.strides[d] == 0) continue;
        next = std::max(next, std::min<int64_t>(tensor.strides[d], 4));
        tensor.strides[d] = next;
        next *= std::max<int64_t>(tensor.sizes[d], 1);
    }
}
void replaceNumbers(std::vector<CallItem>& items, const std::string& from, const std::string& to) {
    for (CallItem& item : items) {
        if (item.kind == CallItem::Kind::Word && item.word == from) item.word = to;
        if (item.kind == CallItem::Kind::List) replaceNumbers(item.items, from, to);
    }
}
std::set<int64_t> sizesIn(std::vector<CallItem>& items) {
    std::set<int64_t> sizes;
    forEachTensor(items, [&](const CallItem& tensor) { sizes.insert(tensor.sizes.begin(), tensor.sizes.end()); });
    return sizes;
}
bool affordable(std::vector<CallItem>& items) {
    bool all = true;
    forEachTensor(items, [&](const CallItem& tensor) {
        double elements = 1;
        for (const int64_t size : tensor.sizes) elements *= static_cast<double>(size);
        all &= elements <= kMostElements;
    });
    return all;
}

/// Texts that are not among those before.
class NewTexts {
  public:
    explicit NewTexts(const Texts& samples, const Texts& more = {}) {
        for (const Texts* all : {&samples, &more})
            for (const std::string& sample : *all) m_seen.insert(printItems(parseItems(sample)));
    }
    void add(const std::vector<CallItem>& items) {
        if (std::string text = printItems(items); m_seen.insert(text).second) texts.push_back(std::move(text));
    }
    Texts texts;

  private:
    std::set<std::string> m_seen;
};

/// The operand as the call gets it: a placeholder of another type and what makes the sample's type of it.
class OperandMaker {
  public:
    OperandMaker(GraphBuilder& builder, Operands operands) : m_builder(&builder), m_operands(operands) {}

    Value make(const TensorSpec& spec, size_t number) {
        TensorSpec tensorSpec = spec;
        const size_t rank = spec.sizes.size();
        const auto plain = [&] { tensorSpec.strides = contiguousStrides(tensorSpec.sizes); };
        switch (m_operands) {
            case Operands::Stored: return placeholder(tensorSpec, number);
            case Operands::Computed:
                ++changed;
                return m_builder->call("aten.clone.default", {placeholder(tensorSpec, number)});
            case Operands::Transposed: {
                if (rank < 2) break;
                ++changed;
                std::swap(tensorSpec.sizes[rank - 1], tensorSpec.sizes[rank - 2]);
                plain();
                return transposeLast(placeholder(tensorSpec, number));
            }
            case Operands::Sliced: {
                if (rank < 1) break;
                ++changed;
                tensorSpec.sizes[rank - 1] += 3;
                tensorSpec.sizes[0] += 1;
                plain();
                Value whole = placeholder(tensorSpec, number);
                const auto dim = static_cast<int64_t>(rank) - 1;
                whole = m_builder->call("aten.slice.Tensor",
                                        {whole, 0, int64_t{1}, tensorSpec.sizes[0] - (dim == 0 ? 3 : 0)});
                if (dim > 0)
                    whole =
                        m_builder->call("aten.slice.Tensor", {whole, dim, int64_t{2}, tensorSpec.sizes[rank - 1] - 1});
                return whole;
            }
            case Operands::Expanded: {
                const auto wide = std::find_if(tensorSpec.sizes.begin(), tensorSpec.sizes.end(),
                                               [](int64_t size) { return size > 1; });
                if (wide == tensorSpec.sizes.end() || spec.draw == TensorSpec::Draw::Distinct) break;
                ++changed;
                *wide = 1;
                plain();
                return expand(placeholder(tensorSpec, number), toSymDims(spec.sizes));
            }
        }
        return placeholder(tensorSpec, number);
    }

    std::vector<Tensor> inputs;
    int changed = 0;

  private:
    Value placeholder(const TensorSpec& spec, size_t number) {
        TensorType type = TensorType::contiguous(spec.dtype, toSymDims(spec.sizes));
        type.strides = toSymDims(spec.strides);
        inputs.push_back(makeInput(spec, number));
        Node* first = m_builder->created().empty() ? nullptr : m_builder->created().front();
        return m_builder->value(m_builder->graph().placeholder("x", ValueType(type), first));
    }

    GraphBuilder* m_builder;
    Operands m_operands;
};

/// The results of the call, views and what else only looks at memory copied by a kernel.
std::vector<Argument> resultsOf(GraphBuilder& builder, Node& call) {
    std::vector<Argument> results;
    const auto add = [&](const Value& value) {
        results.push_back(call.is(Tag::View) ? builder.call("aten.clone.default", {value}) : value);
    };
    const TupleType* tuple = call.type().tuple();
    if (tuple == nullptr) add(builder.value(call));
    for (size_t i = 0; tuple != nullptr && i < tuple->size(); ++i) {
        if ((*tuple)[i].tensor()) add(builder.value(call)[static_cast<int64_t>(i)]);
        else results.emplace_back();
    }
    return results;
}

struct Built {
    std::shared_ptr<Module> module = std::make_shared<Module>();
    std::vector<Tensor> inputs;
};
Result<Built> build(const Op& op, const std::string& text, Operands operands) {
    CT_TRY(const auto sample, parseSample(text));
    Built built;
    GraphBuilder builder(built.module->graph());
    OperandMaker maker(builder, operands);
    std::map<const Node*, Node*> made;
    for (size_t i = 0; i < sample->placeholders.size(); ++i) {
        if (!sample->inputs[i].defined()) return invalidInput("an operand that cannot be made");
        made[sample->placeholders[i]] = maker.make(sample->specs[i], i).node();
        if (builder.error()) return *builder.error();
    }
    if (operands != Operands::Stored && maker.changed == 0) return invalidInput("no operand that could lie otherwise");
    const auto own = [&](const Argument& arg) { return arg.mapNodes([&](Node* node) { return made.at(node); }); };
    std::vector<Argument> positional;
    NamedArguments keywords;
    for (const Argument& arg : sample->positional) positional.push_back(own(arg));
    for (const auto& [key, arg] : sample->keywords) keywords.emplace_back(key, own(arg));
    Node* call = builder.call(op, std::move(positional), std::move(keywords)).node();
    if (builder.error()) return *builder.error();
    std::vector<Argument> results = resultsOf(builder, *call);
    if (builder.error()) return *builder.error();
    built.module->graph().output(ArgumentList{std::move(results), true});
    built.module->inputs.resize(maker.inputs.size());
    built.module->outputs.resize(built.module->graph().outputs().size());
    built.inputs = std::move(maker.inputs);
    return built;
}

}  // namespace

std::string_view nameOf(Operands operands) {
    switch (operands) {
        case Operands::Stored: return "";
        case Operands::Computed: return "computed";
        case Operands::Transposed: return "transposed";
        case Operands::Sliced: return "sliced";
        case Operands::Expanded: return "expanded";
    }
    return "";
}

std::vector<const Op*> loweredOps() {
    std::vector<const Op*> ops;
    for (const Op* op : allOps())
        if (op->def() && op->def()->lower && op->functional() == nullptr && !op->is(Tag::Random) &&
            op->name().find("empty") == std::string::npos && op->baseName() != "convolution")  // a kernel on GPUs alone
            ops.push_back(op);
    return ops;
}

Texts resizedSamples(const Texts& samples, std::span<const int64_t> sizes, const Texts& texts) {
    NewTexts found(samples, texts);
    for (const std::string& sample : samples) {
        std::vector<CallItem> items = parseItems(sample);
        for (const int64_t from : sizesIn(items))
            for (const int64_t to : sizes)
                for (const bool alsoNumbers : {false, true}) {
                    std::vector<CallItem> own = items;
                    forEachTensor(own, [&](CallItem& tensor) {
                        std::replace(tensor.sizes.begin(), tensor.sizes.end(), from, to);
                        restride(tensor);
                        if (tensor.draw == "<" + std::to_string(from) && to > 0) tensor.draw = "<" + std::to_string(to);
                    });
                    if (alsoNumbers) replaceNumbers(own, std::to_string(from), std::to_string(to));
                    if (affordable(own)) found.add(own);
                }
    }
    return std::move(found.texts);
}

Texts retypedSamples(const Texts& samples, std::span<const DType> dtypes, const Texts& texts) {
    NewTexts found(samples, texts);
    for (const std::string& sample : samples)
        for (const DType dtype : dtypes)
            for (const bool onlyFloats : {true, false}) {
                std::vector<CallItem> own = parseItems(sample);
                forEachTensor(own, [&](CallItem& tensor) {
                    if (!onlyFloats || isFloating(*dtypeFromAbbreviation(tensor.word)))
                        tensor.word = info(dtype).abbreviation;
                });
                found.add(own);
            }
    return std::move(found.texts);
}

Texts oddSamples(const Texts& samples) {
    NewTexts found(samples);
    for (const std::string& sample : samples) {
        std::vector<CallItem> own = parseItems(sample);
        forEachTensor(own, [&](CallItem& tensor) {
            if (tensor.draw.empty() || tensor.draw == ">0") tensor.draw = "?";
        });
        found.add(own);
        // So many elements that each odd value occurs, beside each other one.
        for (const int64_t size : sizesIn(own)) {
            std::vector<CallItem> wide = own;
            forEachTensor(wide, [&](CallItem& tensor) {
                std::replace(tensor.sizes.begin(), tensor.sizes.end(), size, int64_t{211});
                restride(tensor);
            });
            if (affordable(wide)) found.add(wide);
        }
    }
    return std::move(found.texts);
}

Result<LoweringCase> makeCase(const Op& op, const std::string& text, Operands operands) {
    CT_TRY(Built built, build(op, text, operands));
    LoweringCase one;
    one.name = op.name() + "(" + text + ")" + (operands == Operands::Stored ? "" : ", operands ") +
               std::string(nameOf(operands));
    one.module = built.module;
    one.inputs = std::move(built.inputs);
    one.bounds = {boundOf(op)};
    CT_TRY_VOID(judge(one));
    return one;
}

}  // namespace cutaway::testing
