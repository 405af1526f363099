#pragma once
// The calls that op tables give as samples (OpDef::samples), built into graphs with inputs that any language can
// reproduce, and evaluated.
//
// A sample is an argument list in which a tensor is written as its type: "f32[2, 3], f32[3][2], dim = -1". After the
// type: "<n" draws integers from 0..n-1 and floats from (-n, n); ">0" positive; "!" pairwise different (below 513
// elements); "%" floats between 0 and 1; "?" rarely tested values. Strides of 0 repeat elements; strides that make
// elements overlap are filled in row-major order. "$0" is the first tensor once more.
//
// Element i (row-major, repeated elements counted once) of the t-th tensor of a sample comes from the 64-bit number
//   r = mix((t + 1) * 2^32 + i + 1), mix(z) = splitmix64's finalizer of z * 0x9E3779B97F4A7C15:
//   bool                 r & 1
//   floats               (r % 513 - 256) / 64;  >0: (r % 256 + 1) / 64;  <n: (r % (128n - 1) - (64n - 1)) / 64
//   signed integers      r % 9 - 4;             >0: r % 8 + 1;           <n: r % n
//   unsigned integers    r % 9;                 >0: r % 8 + 1;           <n: r % n
//   "%"                  (r % 127 + 1) / 128
//   "!"                  (77 * i mod 513 - 256), divided by 64 for floats
//   "?"                  kOddFloats, kOddIntegers of op_samples.cpp at r % their number; integers wrapped to the dtype
// Complex elements have the imaginary part of element i of tensor t + 500. Every value is exact in f16 and bf16.
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "engine/ops/build.h"
#include "engine/ops/eval.h"

namespace cutaway::testing {

struct TensorSpec {
    DType dtype = DType::F32;
    Dims sizes, strides;
    enum class Draw { Any, Below, Positive, Distinct, Unit, Odd } draw = Draw::Any;
    int64_t bound = 0;
    std::string text;
};

struct OpSample {
    const Op* op = nullptr;
    int number = 0;
    std::string text;
    /// "aten.add.Tensor#3"
    std::string name() const { return op->name() + "#" + std::to_string(number); }
};

constexpr int64_t kMostInputElements = int64_t{1} << 20;

/// A sample as a graph: placeholders, the call, and a value for each placeholder.
struct SampleCall {
    Graph graph;
    std::vector<Node*> placeholders;
    std::vector<TensorSpec> specs;
    std::vector<Tensor> inputs;  // undefined: too large, or of a dtype without numbers
    std::vector<Argument> positional;
    NamedArguments keywords;
    Node* call = nullptr;
};

/// All samples of an op's row, in order.
std::vector<OpSample> samplesOf(const Op& op);
/// The arguments alone, without the call. Errors: the text cannot be parsed.
Result<std::unique_ptr<SampleCall>> parseSample(std::string_view text);
/// Errors: the text cannot be parsed, or the op's shape rule refuses the call.
Result<std::unique_ptr<SampleCall>> buildSample(const Op& op, std::string_view text);
/// The sample's placeholders and its call at the end of another module's graph, which has no output yet. Returns the
/// values of the call: itself, or the results of its tuple (null where a result is not a tensor).
Result<std::vector<Node*>> appendSample(const SampleCall& sample, Module& module);
/// `t`: which tensor of the sample.
Tensor makeInput(const TensorSpec& spec, size_t t);
/// The sample with every floating dtype replaced by f64.
std::string widenedSample(std::string_view text);

/// Values of nodes by id, for evaluation outside a module.
class NodeValues : public ValueSource {
  public:
    const TensorList& valueOf(const Node& node) const override { return m_values.at(index(node.id())); }
    void set(const Node& node, TensorList value) {
        if (m_values.size() <= index(node.id())) m_values.resize(index(node.id()) + 1);
        m_values[index(node.id())] = std::move(value);
    }

  private:
    std::vector<TensorList> m_values;
};
/// Evaluates one call; its operands' values must be set.
Result<TensorList> evaluateNode(const Node& node, const NodeValues& values);

}  // namespace cutaway::testing
