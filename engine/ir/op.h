#pragma once
// OpDef: a row of the op tables (engine/ops). Op: a registered operator, from a row or opaque.
#include <memory>
#include <string>
#include <string_view>

#include "cutaway/releases.h"
#include "cutaway/result.h"
#include "engine/expr/expr.h"
#include "engine/ir/schema.h"
#include "engine/ir/type.h"

namespace cutaway {

class InferContext;
class EvalContext;
class EvalResult;
class Decomposition;
class Values;
class Derivation;
class LowerContext;

enum class Tag : uint32_t {
    None = 0,
    Pointwise = 1 << 0,    // each result element depends on the operands' elements at the broadcast position
    Commutative = 1 << 1,  // operands 0 and 1 may be swapped
    View = 1 << 2,         // the result aliases operand 0
    Reduction = 1 << 3,
    Inplace = 1 << 4,        // the in-place twin (name_) exists too and is registered from the same row
    Random = 1 << 5,         // draws random numbers; never folded, merged or removed as equal
    Heavy = 1 << 6,          // matrix products, convolutions, attention
    Factory = 1 << 7,        // no tensor operands
    Impure = 1 << 8,         // must not be removed when unused (assertions, copy_)
    DataDependent = 1 << 9,  // result shape depends on values
    Symbolic = 1 << 10,      // arithmetic on sizes, outside tensors
    NoGradient = 1 << 11,    // gradients end here by definition (detach, full_like)
};
constexpr Tag operator|(Tag a, Tag b) { return static_cast<Tag>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b)); }
constexpr bool has(Tag set, Tag tag) { return (static_cast<uint32_t>(set) & static_cast<uint32_t>(tag)) != 0; }

/// When an op's decomposition acts (spec: ops §2.1).
enum class Expand : uint8_t {
    Never,
    Composite,  // before differentiation: the op is shorthand (linear, layer_norm)
    Decompose,  // after differentiation (gelu, native_layer_norm)
};

/// A plain function pointer that also takes a captureless lambda whose result merely converts to R, so that a table
/// row can return a Tensor where an EvalResult is due. Constant-initialised.
template <class Signature>
class Fn;
template <class R, class... Args>
class Fn<R(Args...)> {
  public:
    constexpr Fn() = default;
    constexpr Fn(std::nullptr_t) {}
    constexpr Fn(R (*function)(Args...)) : m_function(function) {}
    template <class F>
    requires(
        std::is_empty_v<F>&& std::is_default_constructible_v<F>&& std::is_invocable_r_v<R, F, Args...>) constexpr Fn(F)
        : m_function([](Args... args) -> R { return F{}(static_cast<Args&&>(args)...); }) {}
    constexpr explicit operator bool() const { return m_function != nullptr; }
    R operator()(Args... args) const { return m_function(static_cast<Args&&>(args)...); }

  private:
    R (*m_function)(Args...) = nullptr;
};

/// One row of an op table. Everything the engine knows about an op stands here; nothing else names it except rules.
struct OpDef {
    std::string_view schema;
    Tag tags = Tag::None;
    /// Result type from the argument types. Errors name the rule that the arguments break.
    Fn<Result<ValueType>(const InferContext&)> infer;
    /// The reference kernel: strided operands in, fresh results out (views return views).
    Fn<EvalResult(const EvalContext&)> eval;
    /// When and into what the op expands; the function may decline ("not handled" leaves the node).
    Expand expand = Expand::Never;
    Fn<Values(Decomposition&)> decompose;
    /// The releases of PyTorch that decompose it; in others the call stays.
    Releases decomposedIn = {};
    /// Gradients of the tensor operands; absent = not differentiable, an error where a gradient arrives. Written in
    /// PyTorch's order: operands by name, alphabetically.
    Fn<void(Derivation&)> derive;
    /// The result element at an output index, as an expression; absent = library call or reference kernel.
    Fn<Expr(LowerContext&)> lower;
    /// Calls to test with, one per line: argument lists in which a tensor is written as its type
    /// ("f32[2, 3], f32[3]"; "i64[4]<10" draws from 0..9, "f32[4]>0" positive, "f32[2, 3][1, 2]" strided).
    std::string_view samples;
};

/// A registered operator. Lives as long as the program; compared by address.
class Op {
  public:
    enum class Style : uint8_t { Function, Method, Module };

    const std::string& name() const { return m_name; }  // "aten.mul.Tensor"; a method's or module's bare name
    Style style() const { return m_style; }
    /// Null for an op we have no row for: it can be shown and moved, not run.
    const OpDef* def() const { return m_def; }
    const Schema* schema() const { return m_schema.get(); }
    /// For an in-place twin (add_): the op that computes the same without mutation.
    const Op* functional() const { return m_functional; }
    bool isOpaque() const { return m_def == nullptr; }
    bool is(Tag tag) const { return m_def != nullptr && has(m_def->tags, tag); }
    bool mutates() const { return m_mutates; }
    /// "aten.mul" of "aten.mul.Tensor".
    std::string_view packet() const;
    /// "mul", from which node names are made.
    std::string_view baseName() const;

  private:
    friend class OpRegistry;
    std::string m_name;
    Style m_style = Style::Function;
    const OpDef* m_def = nullptr;
    std::unique_ptr<const Schema> m_schema;
    const Op* m_functional = nullptr;
    bool m_mutates = false;
};

}  // namespace cutaway
