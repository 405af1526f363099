#include "tests/support/op_record.h"

#include <charconv>
#include <fstream>

#include "engine/autograd/backward.h"
#include "engine/autograd/expand.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/support/check.h"
#include "tests/support/paths.h"

namespace cutaway::testing {
namespace {

using Values = std::map<DType, Tensor>;

std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    for (size_t start = 0;;) {
        const size_t end = text.find(separator, start);
        parts.push_back(text.substr(start, end - start));
        if (end == std::string::npos) return parts;
        start = end + separator.size();
    }
}

/// "f32[2, 3][1, 2]* @17": a type, strides where they are not row-major, "*" where differentiated, the place of the
/// values.
class RecordedParser {
  public:
    RecordedParser(std::string_view text, const Values& values) : m_text(text), m_values(&values) {}

    Result<RecordedTensor> parse(bool& differentiated) {
        const auto dtype = dtypeFromAbbreviation(m_text.substr(0, m_text.find('[')));
        if (!dtype) return fail();
        m_at = m_text.find('[');
        RecordedTensor out;
        out.dtype = *dtype;
        CT_TRY(out.sizes, dims());
        out.strides = contiguousStrides(out.sizes);
        if (peek() == '[') {
            CT_TRY(out.strides, dims());
        }
        out.tracedStrides = out.strides;
        if (peek() == '/') {
            ++m_at;
            CT_TRY(out.tracedStrides, dims());
        }
        differentiated = peek() == '*';
        if (differentiated) ++m_at;
        if (m_text.substr(m_at, 2) != " @") return out;
        m_at += 2;
        CT_TRY(const int64_t place, integer());
        const auto found = m_values->find(*dtype);
        if (found == m_values->end() || place + numel(out.sizes) > found->second.numel()) return fail();
        out.values = found->second.view(out.sizes, contiguousStrides(out.sizes), place);
        return out;
    }

  private:
    char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }
    Error fail() const { return invalidInput("the record has no such tensor: '" + std::string(m_text) + "'"); }
    Result<int64_t> integer() {
        int64_t value = 0;
        const auto [end, error] = std::from_chars(m_text.data() + m_at, m_text.data() + m_text.size(), value);
        if (error != std::errc()) return fail();
        m_at = static_cast<size_t>(end - m_text.data());
        return value;
    }
    Result<Dims> dims() {
        Dims out;
        ++m_at;
        while (peek() != ']') {
            CT_TRY(const int64_t one, integer());
            out.push_back(one);
            while (peek() == ',' || peek() == ' ') ++m_at;
            if (m_at >= m_text.size()) return fail();
        }
        ++m_at;
        return out;
    }

    std::string_view m_text;
    const Values* m_values;
    size_t m_at = 0;
};

Result<RecordedSample> parseLine(const std::string& line, const Values& values) {
    const std::vector<std::string> parts = split(line, " | ");
    if (parts.size() < 2) return invalidInput("the record has a line without results: '" + line + "'");
    RecordedSample sample;
    sample.derived = parts[0].starts_with("~");
    sample.text = parts[0].substr(sample.derived ? 1 : 0);
    if (parts[1] == "refused") sample.outcome = RecordedSample::Outcome::Refused;
    if (parts[1] == "no kernel" || parts[1] == "eager only") sample.outcome = RecordedSample::Outcome::NotCompared;
    if (sample.outcome != RecordedSample::Outcome::Results) return sample;
    constexpr std::string_view kWhenRun = "refused when run: ";
    std::string results = parts[1];
    if (results.starts_with(kWhenRun)) {
        sample.outcome = RecordedSample::Outcome::RefusedWhenRun;
        results = results.substr(kWhenRun.size());
    }
    bool differentiated = false;
    if (results != "nothing" && !results.empty())
        for (const std::string& one : split(results, "; ")) {
            if (one == "-") {
                sample.results.emplace_back();
                continue;
            }
            CT_TRY(RecordedTensor result, RecordedParser(one, values).parse(differentiated));
            if (differentiated) sample.differentiated.push_back(sample.results.size());
            sample.results.emplace_back(std::move(result));
        }
    for (size_t i = 2; i < parts.size(); ++i) {
        const size_t colon = parts[i].find(": ");
        const size_t number = std::stoul(parts[i].substr(0, colon));
        const std::string text = parts[i].substr(colon + 2);
        if (text == "none") {
            sample.gradients.emplace_back(number, std::nullopt);
            continue;
        }
        CT_TRY(RecordedTensor gradient, RecordedParser(text, values).parse(differentiated));
        sample.gradients.emplace_back(number, std::move(gradient));
    }
    return sample;
}

}  // namespace

std::map<std::string, std::string> readOpenList(const char* name) {
    std::map<std::string, std::string> open;
    std::ifstream stream(testFile(QStringLiteral("data/ops/") + name).toStdString());
    std::string reason;
    for (std::string line; std::getline(stream, line);) {
        if (line.starts_with("# ")) reason = line.substr(2);
        else if (!line.empty()) open[line] = reason;
    }
    return open;
}

Result<std::map<std::string, std::vector<RecordedSample>>> readOpRecord() {
    CT_TRY(const SafeTensors file, readSafeTensors(testFile("data/ops/values.safetensors").toStdString()));
    Values values;
    for (const auto& [name, tensor] : file.tensors)
        if (const auto dtype = dtypeFromAbbreviation(name)) values[*dtype] = tensor;
    std::map<std::string, std::vector<RecordedSample>> record;
    std::ifstream stream(testFile("data/ops/samples.txt").toStdString());
    if (!stream) return invalidInput("cannot read tests/data/ops/samples.txt");
    std::vector<RecordedSample>* samples = nullptr;
    for (std::string line; std::getline(stream, line);) {
        if (line.starts_with("## ")) {
            samples = &record[line.substr(3)];
            continue;
        }
        if (samples == nullptr) return invalidInput("tests/data/ops/samples.txt does not begin with an op");
        CT_TRY(RecordedSample sample, parseLine(line, values));
        samples->push_back(std::move(sample));
    }
    return record;
}

Result<std::vector<Tensor>> buildSampleModule(const Op& op, std::string_view text, Module& module) {
    CT_TRY(const std::unique_ptr<SampleCall> sample, buildSample(op, text));
    CT_TRY(const std::vector<Node*> values, appendSample(*sample, module));
    std::vector<Argument> results;
    for (Node* result : values) results.push_back(result ? Argument(result) : Argument());
    module.graph().output(ArgumentList{std::move(results), true});
    module.outputs.resize(module.graph().outputs().size());
    return sample->inputs;
}

Tensor tangentOf(DType dtype, const Dims& sizes, size_t number) {
    TensorSpec spec;
    spec.dtype = dtype;
    spec.sizes = sizes;
    spec.strides = contiguousStrides(sizes);
    return makeInput(spec, 1000 + number);
}

Result<std::map<size_t, Tensor>> gradientsOf(const Op& op, const RecordedSample& recorded) try {
    Module module;
    CT_TRY(std::vector<Tensor> inputs, buildSampleModule(op, recorded.text, module));
    const CompileRequest options;
    Rewriter rewriter("gradients", options);
    CT_TRY_VOID(expandComposites(module, rewriter));
    Graph& graph = module.graph();
    const std::vector<Node*> primals = graph.placeholders();
    Node* afterInputs = primals.empty() ? graph.first() : primals.back()->next();
    Backward backward(graph, *graph.outputNode(), gradientFlow(module), rewriter);
    GraphBuilder builder(graph);
    const std::vector<Argument> outputs = graph.outputs();
    for (const size_t number : recorded.differentiated) {
        Node* output = outputs.at(number).node();
        const TensorType& type = output->tensor();
        Node& tangent =
            graph.placeholder("tangent", ValueType(TensorType::contiguous(type.dtype, type.sizes)), afterInputs);
        module.inputs.emplace_back();
        inputs.push_back(tangentOf(type.dtype, toInts(type.sizes), number));
        backward.accumulate(*output, builder.value(tangent), *output);
    }
    CT_TRY_VOID(backward.run());
    std::vector<Argument> gradients;
    for (const Node* primal : primals) {
        Node* gradient = backward.gradientOf(*primal);
        gradients.push_back(gradient ? Argument(gradient) : Argument());
    }
    graph.setArg(*graph.outputNode(), 0, ArgumentList{std::move(gradients), true});
    module.outputs.clear();
    module.outputs.resize(primals.size());
    CT_TRY(const std::vector<Tensor> values, interpret(module, inputs));
    std::map<size_t, Tensor> found;
    for (size_t i = 0; i < primals.size(); ++i) found[i] = values[i];
    return found;
} catch (const InternalError& bug) {
    return Error{ErrorCode::Internal, bug.what(), {}, {}};
}

}  // namespace cutaway::testing
