#include "engine/libraries/conditions.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "engine/ir/data_dependent.h"
#include "engine/ir/graph.h"
#include "engine/ir/readers.h"
#include "engine/libraries/choose.h"
#include "engine/libraries/library.h"
#include "engine/ops/alias.h"
#include "engine/ops/conv_rules.h"

namespace cutaway {
namespace {

std::string nameOf(DType dtype) { return std::string(info(dtype).torchName); }

/// Whether memory that the call writes to is read later under another name. Then the library cannot take the call,
/// since it stores the result elsewhere.
bool isSeenAfterwards(const Node& node) {
    const Node* written = node.arg(size_t{0}).node();
    const Node& root = storageRoot(*written);
    if (!root.isCall()) return true;
    std::set<const Node*> sharers = {&root};  // membership only
    for (const Node* sharer : sharersOf(root)) {
        const Node* source = sharedOperand(*sharer);
        if (sharer != &node && source && sharers.contains(source)) sharers.insert(sharer);
    }
    for (const Node* later = node.next(); later; later = later->next()) {
        bool reads = false;
        later->forEachInput([&](const Node* input) { reads |= sharers.contains(input); });
        if (reads) return true;
    }
    return false;
}

/// float16 is computed in f32 where the processor has no such products.
constexpr DType kServed[] = {DType::F32, DType::BF16, DType::F16};

std::string whyNotType(const ValueType& type, const std::string& what) {
    const TensorType* tensor = type.tensor();
    if (tensor == nullptr) return what + " is not a tensor";
    if (std::ranges::find(kServed, tensor->dtype) == std::end(kServed))
        return what + " is " + nameOf(tensor->dtype) + ", which the library does not compute in here";
    return {};
}
std::string whyNotOperands(const Node& node) {
    for (const Node* input : node.inputs())
        if (std::string why = whyNotType(input->type(), "'" + input->name() + "'"); !why.empty()) return why;
    return {};
}

/// The integers at a parameter; a single one stands for all. None if there is no such parameter.
std::vector<int64_t> integersAt(const Node& node, std::string_view param) {
    const int at = node.op().schema()->find(param);
    if (at < 0) return {};
    const Argument& argument = node.arg(static_cast<size_t>(at));
    if (argument.list() == nullptr) return {argument.asInt().value_or(0)};
    std::vector<int64_t> found;
    for (const Argument& item : *argument.list()) found.push_back(item.asInt().value_or(0));
    return found;
}
/// Of a transposed convolution.
std::string whyNotPadding(const Node& node) {
    if (const std::vector<int64_t> transposed = integersAt(node, "transposed"); transposed == std::vector<int64_t>{0})
        return {};
    const std::vector<int64_t> padding = integersAt(node, "output_padding"), stride = integersAt(node, "stride");
    if (padding.empty() || stride.empty()) return {};
    for (size_t i = 0; i < std::max(padding.size(), stride.size()); ++i)
        if (padding[std::min(i, padding.size() - 1)] >= std::max<int64_t>(stride[std::min(i, stride.size() - 1)], 1))
            return "output_padding must be smaller than the stride";
    return {};
}

}  // namespace

std::string whyNotProduct(const Node& node, const TargetInfo&) {
    std::string why = whyNotType(node.type(), "the result");
    return why.empty() ? whyNotOperands(node) : why;
}
namespace {
/// `dtype`: of all operands.
std::string whyNotDense(const Node& node, DType dtype) {
    if (dtype != DType::F64 && dtype != DType::F32 && !isHalf(dtype))
        return "it multiplies float64, float32, float16 and bfloat16";
    for (const Argument& arg : node.args()) {
        const TensorType* type = arg.node() ? arg.node()->type().tensor() : nullptr;
        if (type == nullptr) continue;
        if (type->dtype != dtype) return "'" + arg.node()->name() + "' is not " + nameOf(dtype);
        if (type->rank() < 2) continue;  // what is added
        const SymInt &row = type->strides[static_cast<size_t>(type->rank()) - 2], &column = type->strides.back();
        const auto dense = [](const SymInt& step, const SymInt& size) {
            return step == SymInt(1) || size == SymInt(1);
        };
        if (!dense(row, type->sizes[static_cast<size_t>(type->rank()) - 2]) && !dense(column, type->sizes.back()))
            return "neither rows nor columns of '" + arg.node()->name() + "' are dense";
    }
    return {};
}
}  // namespace

std::string whyNotDenseProduct(const Node& node, const TargetInfo&) {
    const TensorType* result = node.type().tensor();
    return result == nullptr ? "its result is not a tensor" : whyNotDense(node, result->dtype);
}
std::string whyNotWideProduct(const Node& node, const TargetInfo&) {
    const Node* const left = node.arg(size_t{0}).node();
    const TensorType *const type = left ? left->type().tensor() : nullptr, *const result = node.type().tensor();
    if (type == nullptr || result == nullptr || result->dtype != DType::F32)
        return "it gives float32 of float16 and bfloat16";
    return whyNotDense(node, type->dtype);
}
std::string whyNotDenseConvolution(const Node& node, const TargetInfo&) {
    const auto served = [](DType dtype) { return dtype == DType::F64 || dtype == DType::F32 || isHalf(dtype); };
    const TensorType* weight = node.arg("weight").node() ? node.arg("weight").node()->type().tensor() : nullptr;
    if (node.op().baseName() == "convolution" && isConvolvedByChannel(InferContext(node.op(), node.args())))
        return "each channel is convolved by itself, which kernels are faster at";
    if (weight == nullptr || !served(weight->dtype)) return "it convolves float64, float32, float16 and bfloat16";
    if (weight->rank() < 3 || weight->rank() > 5) return "the library slides windows over one to three dims";
    for (const Node* input : node.inputs())
        if (const TensorType* type = input->type().tensor(); type && type->dtype != weight->dtype)
            return "'" + input->name() + "' has another dtype than the weight";
    return {};
}
std::string whyNotTensorCoreConvolution(const Node& node, const TargetInfo& target) {
    if (std::string why = whyNotDenseConvolution(node, target); !why.empty()) return why;
    if (isHalf(node.arg("weight").node()->type().tensor()->dtype)) return {};
    static constexpr LibraryRow kAsked{.op = "", .library = kCudnn, .whyNot = nullptr};
    return roundsToTf32(kAsked, node, target) ? std::string() : "its operands are neither halves nor rounded to TF32";
}
std::string whyNotConvolution(const Node& node, const TargetInfo&) {
    const Node* input = node.arg("input").node();
    const TensorType* type = input ? input->type().tensor() : nullptr;
    if (type == nullptr || type->sizes.size() < 3 || type->sizes.size() > 5)
        return "the library slides windows over one to three dims";
    if (std::string why = whyNotPadding(node); !why.empty()) return why;
    return whyNotOperands(node);
}
std::string whyNotPacked(const Node& node, const TargetInfo& target) {
    if (std::string why = whyNotProduct(node, target); !why.empty()) return why;
    if (std::string why = whyNotPadding(node); !why.empty()) return why;
    if (node.op().mutates() && isSeenAfterwards(node))
        return "what it writes to is read later under another name, and the library stores its result elsewhere";
    return {};
}
const Node* addedOperand(const Node& convolution) {
    const auto* function = convolution.arg("binary_attr").get<std::string>();
    const Node* other = convolution.arg("other").node();
    const TensorType *type = other ? other->type().tensor() : nullptr, *own = convolution.type().tensor();
    const bool alike =
        type && own && type->dtype == own->dtype && type->sizes == own->sizes && type->strides == own->strides;
    return function && *function == "add" && alike ? other : nullptr;
}
std::string whyNotAttention(const Node& node, const TargetInfo&) {
    const auto served = [](DType dtype) { return dtype == DType::F32 || isHalf(dtype); };
    const auto find = [&](std::string_view param) {
        const int at = node.op().schema()->find(param);
        return at < 0 ? nullptr : &node.arg(static_cast<size_t>(at));
    };
    const TensorType* query = find("query")->node() ? find("query")->node()->type().tensor() : nullptr;
    if (query == nullptr || !served(query->dtype)) return "the query is not a tensor of float32, bfloat16 or float16";
    if (find("dropout_p")->asReal().value_or(1) != 0)
        return "it has dropout, and the state of the random generator is not an operand";
    const Argument* mask = find("attn_mask") ? find("attn_mask") : find("attn_bias");
    const TensorType* added = mask && mask->node() ? mask->node()->type().tensor() : nullptr;
    if (added != nullptr && !isFloating(added->dtype))
        return "the mask is " + nameOf(added->dtype) + ", and only floats are added to scores";
    if (find("grad_input_mask") && (*find("grad_input_mask")->list())[3].asInt() != 0)
        return "the gradient of the mask is asked for";
    return {};
}
std::string whyNotCopies(const Node& node, const TargetInfo& target) {
    if (isCopiedConcatenation(node, target)) return {};
    return "only more than " + std::to_string(target.fusion.parts) +
           " parts of the result's dtype and rank are copied, fewer are chosen between by a kernel";
}

std::string whyNotPortable(const Node& node, const TargetInfo&) {
    std::string why;
    const auto check = [&](const ValueType& type, const std::string& what) {
        const TensorType* tensor = type.tensor();
        if (tensor == nullptr || !why.empty()) return;
        const bool known = tensor->dtype <= DType::U64;
        if (!known) why = what + " is " + nameOf(tensor->dtype) + ", which portable functions do not compute in";
        if (tensor->rank() > CT_MAX_RANK)
            why = what + " has " + std::to_string(tensor->rank()) + " dims, and portable functions take up to " +
                  std::to_string(CT_MAX_RANK);
    };
    check(node.type(), "the result");
    if (const TupleType* tuple = node.type().tuple())
        for (const ValueType& item : *tuple) check(item, "a result");
    for (const Node* input : node.inputs()) check(input->type(), "'" + input->name() + "'");
    for (const Argument& arg : node.args())
        if (arg.get<std::complex<double>>() && why.empty()) why = "portable functions take no complex numbers";
    const Node* const written = node.op().mutates() ? node.arg(size_t{0}).node() : nullptr;
    const Node* const root = written ? &storageRoot(*written) : nullptr;
    if (root && !root->isCall() && !root->isPlaceholder() && why.empty())
        why = "it writes to '" + root->name() + "', a constant, whose memory may be a file's";
    return why;
}

std::string whyNotGpuFunction(const Node& node, const TargetInfo& target) {
    constexpr int kMostDims = 8;
    std::string why = whyNotPortable(node, target);
    for (const Node* input : node.inputs()) {
        const TensorType* type = input->type().tensor();
        if (type == nullptr || !why.empty()) continue;
        if (isComplex(type->dtype)) why = "'" + input->name() + "' is complex";
        if (type->rank() > kMostDims) why = "'" + input->name() + "' has more than 8 dims";
    }
    for (const Argument& arg : node.args()) {
        if (arg.list() == nullptr) continue;
        for (const Argument& item : *arg.list()) {
            const TensorType* type = item.node() ? item.node()->type().tensor() : nullptr;
            if (type && (type->dtype == DType::Bool || type->dtype == DType::U8)) why = "an index is a mask";
        }
    }
    return why;
}

std::string whyNotGpuAttention(const Node& node, const TargetInfo&) {
    constexpr int64_t kMostElements = 128;
    const InferContext c(node.op(), node.args());
    if (c.real("dropout_p") != 0) return "dropout is drawn by nothing but the operator's own kernel";
    const auto query = c.tensor("query");
    for (const std::string_view param : {"query", "key", "value"}) {
        const auto type = c.tensor(param);
        if (!type || type->rank() != 4 || !isHalf(type->dtype) || type->dtype != query->dtype)
            return "it attends in float16 or bfloat16, over four dims";
        if (!type->sizes[3].isInt() || type->sizes[3].value() > kMostElements)
            return "heads have more than " + std::to_string(kMostElements) + " elements";
        if (!(type->strides[3] == SymInt(1))) return "elements of a head lie apart";
        if (!type->sizes[1].isInt() || type->sizes[1].value() < 1 || !query->sizes[1].isInt() ||
            query->sizes[1].value() % type->sizes[1].value() != 0)
            return "heads of queries do not divide into those of keys";
    }
    for (const std::string_view param : {"attn_mask", "attn_bias"}) {
        if (node.op().schema()->find(param) < 0 || !c.has(param)) continue;
        const auto mask = c.tensor(param);
        if (!mask || (mask->dtype != DType::F32 && !isHalf(mask->dtype))) return "its mask is of another dtype";
    }
    for (const Node* user : node.users())
        if (!user->isCall("operator.getitem") || user->arg(1).asInt().value_or(2) > 1)
            return "more is read of it than the output and the sums";
    return {};
}

std::string whySlowConvolution(const Node& node) {
    return whyNotPadding(node).empty() ? whySlowProduct(node) : std::string();
}
std::string whySlowProduct(const Node& node) {
    for (const Node* input : node.inputs())
        if (const TensorType* type = input->type().tensor())
            if (type->dtype == DType::F32 || isHalf(type->dtype))
                return "the engine's own function is faster at " + nameOf(type->dtype);
    return {};
}

std::string whyNotLeft(const Node& node, const TargetInfo& target) {
    bool left = false;
    const auto check = [&](const ValueType& type) {
        const TensorType* tensor = type.tensor();
        left |=
            tensor && (isComplex(tensor->dtype) || std::count(tensor->sizes.begin(), tensor->sizes.end(), SymInt(0)));
    };
    check(node.type());
    for (const Node* input : node.inputs()) check(input->type());
    return left ? whyNotPortable(node, target) : "a generated kernel computes it for real dtypes";
}

std::string whyNotFound(const Node&, const TargetInfo&) {
    return "the engine's own function computes or checks sizes that follow from data";
}
std::string whyNotBag(const Node& node, const TargetInfo& target) {
    const bool rowsAlone = std::all_of(node.users().begin(), node.users().end(), [](const Node* user) {
        return user->isCall("operator.getitem") && user->arg(1).asInt() == 0;
    });
    return rowsAlone ? "only its rows (output 0) are read; a generated kernel computes them"
                     : whyNotPortable(node, target);
}

std::string whyNotIndex(const Node& node, const TargetInfo& target) {
    return sizeDependsOnData(node.op(), node.args()) ? whyNotFound(node, target) : whyNotLeft(node, target);
}

}  // namespace cutaway
