#include "tests/support/op_samples.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "engine/support/checked.h"

namespace cutaway::testing {
namespace {

uint64_t mix(uint64_t z) {
    z *= 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/// Whether a test can afford the tensor, and its dtype has numbers.
bool makeable(const TensorSpec& spec) {
    if (spec.dtype > DType::F8E5M2) return false;
    double elements = 1, reach = 1;
    for (size_t d = 0; d < spec.sizes.size(); ++d) {
        elements *= static_cast<double>(spec.sizes[d]);
        reach += static_cast<double>(spec.sizes[d]) * static_cast<double>(spec.strides[d]);
    }
    return elements <= static_cast<double>(kMostInputElements) && reach <= 64 * static_cast<double>(kMostInputElements);
}

class SampleParser {
  public:
    SampleParser(std::string_view text, SampleCall& call) : m_text(text), m_call(&call) {}

    Result<void> parse() {
        skip();
        while (m_at < m_text.size()) {
            const size_t start = m_at;
            const std::string name = word();
            skip();
            if (!name.empty() && peek() == '=') {
                ++m_at;
                CT_TRY(Argument value, parseValue());
                m_call->keywords.emplace_back(name, std::move(value));
            } else {
                m_at = start;
                CT_TRY(Argument value, parseValue());
                m_call->positional.push_back(std::move(value));
            }
            skip();
            if (m_at < m_text.size() && peek() != ',') return fail("',' expected");
            ++m_at;
            skip();
        }
        return {};
    }

  private:
    char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }
    void skip() {
        while (peek() == ' ') ++m_at;
    }
    Error fail(const std::string& what) const {
        return invalidInput("sample: " + what + " at '" + std::string(m_text.substr(m_at)) + "'");
    }
    std::string word() {
        const size_t start = m_at;
        while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '.') ++m_at;
        return std::string(m_text.substr(start, m_at - start));
    }
    Result<int64_t> integer() {
        int64_t value = 0;
        const auto [end, error] = std::from_chars(m_text.data() + m_at, m_text.data() + m_text.size(), value);
        if (error != std::errc()) return fail("integer expected");
        m_at = static_cast<size_t>(end - m_text.data());
        return value;
    }
    Result<Dims> dims() {
        Dims out;
        ++m_at;
        skip();
        while (peek() != ']') {
            CT_TRY(const int64_t one, integer());
            out.push_back(one);
            skip();
            if (peek() == ',') ++m_at;
            skip();
            if (m_at >= m_text.size()) return fail("']' expected");
        }
        ++m_at;
        return out;
    }
    Result<Argument> parseTensor(DType dtype, size_t start) {
        TensorSpec spec;
        spec.dtype = dtype;
        CT_TRY(spec.sizes, dims());
        spec.strides = contiguousStrides(spec.sizes);
        if (peek() == '[') {
            CT_TRY(spec.strides, dims());
            if (spec.strides.size() != spec.sizes.size()) return fail("one stride per size");
        }
        if (peek() == '<') {
            ++m_at;
            spec.draw = TensorSpec::Draw::Below;
            CT_TRY(spec.bound, integer());
        } else if (m_text.substr(m_at).starts_with(">0")) {
            m_at += 2;
            spec.draw = TensorSpec::Draw::Positive;
        } else if (peek() == '!') {
            ++m_at;
            spec.draw = TensorSpec::Draw::Distinct;
        } else if (peek() == '%') {
            ++m_at;
            spec.draw = TensorSpec::Draw::Unit;
        } else if (peek() == '?') {
            ++m_at;
            spec.draw = TensorSpec::Draw::Odd;
        }
        spec.text = std::string(m_text.substr(start, m_at - start));
        TensorType type = TensorType::contiguous(dtype, toSymDims(spec.sizes));
        type.strides = toSymDims(spec.strides);
        Node& node = m_call->graph.placeholder("x", ValueType(type));
        m_call->placeholders.push_back(&node);
        m_call->inputs.push_back(makeable(spec) ? makeInput(spec, m_call->specs.size()) : Tensor());
        m_call->specs.push_back(std::move(spec));
        return Argument(&node);
    }
    Result<Argument> parseValue() {
        skip();
        if (peek() == '[') return parseList();
        if (peek() == '\'' || peek() == '"') {
            const size_t end = m_text.find(peek(), m_at + 1);
            if (end == std::string_view::npos) return fail("string does not end");
            const std::string value(m_text.substr(m_at + 1, end - m_at - 1));
            m_at = end + 1;
            return Argument(value);
        }
        if (peek() == '$') {
            ++m_at;
            CT_TRY(const int64_t which, integer());
            if (which < 0 || which >= static_cast<int64_t>(m_call->placeholders.size())) return fail("no such tensor");
            return Argument(m_call->placeholders[static_cast<size_t>(which)]);
        }
        const size_t start = m_at;
        if (peek() == '-' || peek() == '+' || std::isdigit(static_cast<unsigned char>(peek()))) return parseNumber();
        const std::string name = word();
        if (name == "None") return Argument();
        if (name == "True") return Argument(true);
        if (name == "False") return Argument(false);
        if (name == "inf") return Argument(std::numeric_limits<double>::infinity());
        if (name == "nan") return Argument(std::numeric_limits<double>::quiet_NaN());
        if (name == "device") {
            const size_t open = m_text.find('\'', m_at), close = m_text.find('\'', open + 1),
                         end = m_text.find(')', m_at);
            if (end == std::string_view::npos || close > end) return fail("device(type='...') expected");
            const auto device = deviceFromText(m_text.substr(open + 1, close - open - 1));
            if (!device) return fail("unknown device");
            m_at = end + 1;
            return Argument(*device);
        }
        if (name.starts_with("torch.")) {
            const std::string bare = name.substr(6);
            if (auto dtype = dtypeFromTorchName(name)) return Argument(*dtype);
            if (auto layout = layoutFromName(bare)) return Argument(*layout);
            if (auto format = memoryFormatFromName(bare)) return Argument(*format);
        }
        if (auto dtype = dtypeFromAbbreviation(name); dtype && peek() == '[') return parseTensor(*dtype, start);
        m_at = start;
        return fail("value not understood");
    }
    Result<Argument> parseList() {
        std::vector<Argument> items;
        ++m_at;
        skip();
        while (peek() != ']') {
            CT_TRY(Argument item, parseValue());
            items.push_back(std::move(item));
            skip();
            if (peek() == ',') ++m_at;
            skip();
            if (m_at >= m_text.size()) return fail("']' expected");
        }
        ++m_at;
        return Argument(std::move(items));
    }
    Result<Argument> parseNumber() {
        const size_t start = m_at;
        if (m_text.substr(m_at).starts_with("-inf")) {
            m_at += 4;
            return Argument(-std::numeric_limits<double>::infinity());
        }
        while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '.' || peek() == '-' || peek() == '+')
            ++m_at;
        const std::string token(m_text.substr(start, m_at - start));
        if (token.ends_with('j')) return Argument(std::complex<double>(0, std::strtod(token.c_str(), nullptr)));
        if (token.find_first_of(".e") == std::string::npos) {
            m_at = start;
            CT_TRY(const int64_t value, integer());
            return Argument(value);
        }
        return Argument(std::strtod(token.c_str(), nullptr));
    }

    std::string_view m_text;
    SampleCall* m_call;
    size_t m_at = 0;
};

/// The imaginary part of tensor t is drawn as tensor t + kImaginary is.
constexpr size_t kImaginary = 500;

constexpr double kOddFloats[] = {0,
                                 1,
                                 std::numeric_limits<double>::quiet_NaN(),
                                 -1,
                                 std::numeric_limits<double>::infinity(),
                                 -0.0,
                                 -2.5,
                                 -std::numeric_limits<double>::infinity(),
                                 1e30,
                                 0.5,
                                 -1e30,
                                 1e-40,
                                 65504,
                                 1e300};
constexpr int64_t kOddIntegers[] = {0,
                                    1,
                                    -1,
                                    2,
                                    5,
                                    -5,
                                    127,
                                    -128,
                                    255,
                                    1000,
                                    65535,
                                    -32768,
                                    std::numeric_limits<int32_t>::max(),
                                    std::numeric_limits<int32_t>::min(),
                                    std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int64_t>::min()};

uint64_t drawBits(size_t t, int64_t i) {
    return mix(((static_cast<uint64_t>(t) + 1) << 32) + static_cast<uint64_t>(i) + 1);
}

double drawElement(const TensorSpec& spec, size_t t, int64_t i) {
    const uint64_t r = drawBits(t, i);
    if (spec.draw == TensorSpec::Draw::Odd) return kOddFloats[r % std::size(kOddFloats)];
    auto below = [&](int64_t bound) {
        return static_cast<double>(static_cast<int64_t>(r % static_cast<uint64_t>(bound)));
    };
    const bool floating = isFloating(spec.dtype) || isComplex(spec.dtype);
    if (spec.dtype == DType::Bool) return static_cast<double>(r & 1);
    if (spec.draw == TensorSpec::Draw::Distinct) return static_cast<double>(77 * i % 513 - 256) / (floating ? 64 : 1);
    if (floating) {
        if (spec.draw == TensorSpec::Draw::Positive) return (below(256) + 1) / 64;
        if (spec.draw == TensorSpec::Draw::Unit) return (below(127) + 1) / 128;
        if (spec.draw == TensorSpec::Draw::Below)
            return (below(128 * spec.bound - 1) - static_cast<double>(64 * spec.bound - 1)) / 64;
        return (below(513) - 256) / 64;
    }
    if (spec.draw == TensorSpec::Draw::Positive) return below(8) + 1;
    if (spec.draw == TensorSpec::Draw::Below) return below(spec.bound);
    return isUnsigned(spec.dtype) ? below(9) : below(9) - 4;
}

}  // namespace

Tensor makeInput(const TensorSpec& spec, size_t t) {
    Dims stored = spec.sizes;
    int64_t extent = 1;
    for (size_t d = 0; d < stored.size(); ++d) {
        if (spec.strides[d] == 0 && stored[d] > 1) stored[d] = 1;
        extent += (stored[d] - 1) * spec.strides[d];
    }
    const bool oddIntegers = spec.draw == TensorSpec::Draw::Odd && isIntegral(spec.dtype, false);
    Tensor packed = Tensor::empty(isComplex(spec.dtype) ? DType::C128 : oddIntegers ? DType::I64 : DType::F64, stored);
    for (int64_t i = 0; i < packed.numel(); ++i) {
        if (oddIntegers) {
            packed.as<int64_t>()[i] = kOddIntegers[drawBits(t, i) % std::size(kOddIntegers)];
        } else if (!isComplex(spec.dtype)) {
            packed.as<double>()[i] = drawElement(spec, t, i);
        } else {
            packed.as<std::complex<double>>()[i] = {drawElement(spec, t, i), drawElement(spec, t + kImaginary, i)};
        }
    }
    const int64_t elements = packed.numel() == 0 ? 0 : extent;
    Tensor out(Storage::allocate(static_cast<size_t>(elements * byteSize(spec.dtype))), spec.dtype, stored,
               spec.strides);
    copyInto(out, packed);
    return out.view(spec.sizes, spec.strides, 0);
}

std::vector<OpSample> samplesOf(const Op& op) {
    std::vector<OpSample> samples;
    if (op.def() == nullptr) return samples;
    std::string_view rest = op.def()->samples;
    while (!rest.empty()) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
        if (!line.empty()) samples.push_back({&op, static_cast<int>(samples.size()), std::string(line)});
    }
    return samples;
}

Result<std::unique_ptr<SampleCall>> parseSample(std::string_view text) {
    auto sample = std::make_unique<SampleCall>();
    CT_TRY_VOID(withCheckedSizes("sample", {}, [&] { return SampleParser(text, *sample).parse(); }));
    return sample;
}

Result<std::unique_ptr<SampleCall>> buildSample(const Op& op, std::string_view text) {
    CT_TRY(auto sample, parseSample(text));
    GraphBuilder builder(sample->graph);
    try {
        sample->call = builder.call(op, sample->positional, sample->keywords).node();
    } catch (const InternalError& error) {
        return Error{ErrorCode::Internal, op.name() + ": bug in the shape rule: " + error.what(), {}, {}};
    }
    if (builder.error()) return *builder.error();
    return sample;
}

Result<std::vector<Node*>> appendSample(const SampleCall& sample, Module& module) {
    Graph& graph = module.graph();
    std::map<const Node*, Node*> copies;
    Node* afterInputs = graph.placeholders().empty() ? graph.first() : graph.placeholders().back()->next();
    for (const Node* placeholder : sample.placeholders) {
        TensorType type = placeholder->tensor();
        type.requiresGrad = isFloating(type.dtype) || isComplex(type.dtype);
        copies[placeholder] = &graph.placeholder("x", ValueType(type), afterInputs);
        module.inputs.emplace_back();
    }
    GraphBuilder builder(graph);
    std::vector<Argument> args;
    for (const Argument& arg : sample.call->args())
        args.push_back(arg.mapNodes([&](Node* node) { return copies.at(node); }));
    Node* call = builder.callBound(sample.call->op(), std::move(args)).node();
    if (builder.error()) return *builder.error();
    if (!call->type().tuple()) return std::vector<Node*>{call};
    std::vector<Node*> results;
    const TupleType& types = *call->type().tuple();
    for (size_t i = 0; i < types.size(); ++i)
        results.push_back(types[i].tensor() ? builder.value(*call)[static_cast<int64_t>(i)].node() : nullptr);
    return results;
}

std::string widenedSample(std::string_view text) {
    std::string out(text);
    for (const char* from : {"bf16[", "f16[", "f32["})
        for (size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += 4) {
            if (at > 0 && std::isalnum(static_cast<unsigned char>(out[at - 1]))) continue;
            out.replace(at, std::string_view(from).size(), "f64[");
        }
    for (const char* from : {"torch.bfloat16", "torch.float16", "torch.float32"})
        for (size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += 4)
            out.replace(at, std::string_view(from).size(), "torch.float64");
    return out;
}

Result<TensorList> evaluateNode(const Node& node, const NodeValues& values) {
    try {
        EvalResult result = evaluateCall(node.op(), node.args(), node.type(), values);
        if (!result.ok()) return std::move(result.error());
        return std::move(result.tensors());
    } catch (const InternalError& error) {
        return invalidInput(node.op().name() + ": bug in the kernel: " + error.what());
    }
}

}  // namespace cutaway::testing
