#pragma once
// An argument of a call: a value (another node), a literal, or a nested list of them.
#include <complex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/expr/expr.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

class Node;
class Op;
class Argument;

struct ArgumentList;
struct ArgumentSlice;  // start:stop:step
struct ArgumentDict;   // string keys, in written order
struct SubgraphRef {
    std::string name;
};  // a named subgraph of the same module, as an operand
struct OpRef {
    const Op* op = nullptr;
};  // an operator as a value
struct Ellipsis {};
struct LostTensor {
    std::string text;
};  // torch.Tensor(size=[2], dtype=float32): its data was not printed

class Argument {
  public:
    using Kind = std::variant<std::monostate, Node*, bool, int64_t, double, std::complex<double>, std::string, DType,
                              Device, Layout, MemoryFormat, Expr, SubgraphRef, OpRef, Ellipsis, LostTensor,
                              std::shared_ptr<const ArgumentSlice>, std::shared_ptr<const ArgumentDict>,
                              std::shared_ptr<const ArgumentList>>;  // shared: copies of a graph copy no list of sizes

    Argument() = default;
    Argument(std::nullptr_t) {}
    Argument(Node* node) : m_kind(node) {}
    Argument(bool value) : m_kind(value) {}
    Argument(int value) : m_kind(static_cast<int64_t>(value)) {}
    Argument(int64_t value) : m_kind(value) {}
    Argument(double value) : m_kind(value) {}
    Argument(const char* value) : m_kind(std::string(value)) {}
    Argument(const SymInt& value) {
        if (value.isInt()) m_kind = value.value();
        else m_kind = value.expr();
    }
    Argument(const Scalar& value) {
        std::visit([this](auto v) { m_kind = v; }, value);
    }
    Argument(std::vector<Argument> items);
    Argument(ArgumentList list);
    Argument(const Dims& dims);
    Argument(const SymDims& dims);
    template <class T>
    requires std::disjunction_v<
        std::is_same<T, std::string>, std::is_same<T, DType>, std::is_same<T, Device>, std::is_same<T, Layout>,
        std::is_same<T, MemoryFormat>, std::is_same<T, Expr>, std::is_same<T, std::complex<double>>,
        std::is_same<T, SubgraphRef>, std::is_same<T, OpRef>, std::is_same<T, Ellipsis>, std::is_same<T, LostTensor>,
        std::is_same<T, std::shared_ptr<const ArgumentSlice>>, std::is_same<T, std::shared_ptr<const ArgumentDict>>>
    Argument(T value) : m_kind(std::move(value)) {}

    const Kind& kind() const { return m_kind; }
    template <class T>
    const T* get() const {
        if constexpr (std::is_same_v<T, ArgumentList>) {
            const auto* held = std::get_if<std::shared_ptr<const ArgumentList>>(&m_kind);
            return held ? held->get() : nullptr;
        } else {
            return std::get_if<T>(&m_kind);
        }
    }
    bool isNone() const { return m_kind.index() == 0; }
    Node* node() const {
        const auto* found = std::get_if<Node*>(&m_kind);
        return found ? *found : nullptr;
    }
    const std::vector<Argument>* list() const;
    /// int or bool literal as an integer.
    std::optional<int64_t> asInt() const;
    /// int, bool or float literal as a number.
    std::optional<double> asReal() const;
    bool isNumber() const;  // bool, int, float, complex or symbolic

    /// Calls visit(Node*) for each node inside, depth-first, left to right, repeats included.
    template <class Visit>
    void forEachNode(Visit&& visit) const;
    /// Whether there is a node inside.
    bool holdsNode() const;
    /// A copy in which every node is replaced by map(node).
    template <class Map>
    Argument mapNodes(Map&& map) const;

  private:
    Kind m_kind;
};

/// A list or a tuple; they are equal as arguments, the flag keeps the spelling for text.
struct ArgumentList {
    std::vector<Argument> items;
    bool tuple = false;
};
struct ArgumentSlice {
    Argument start, stop, step;
};
struct ArgumentDict {
    std::vector<std::pair<std::string, Argument>> items;
};

/// Same value: nodes by identity, numbers by type and value (1 and 1.0 differ; NaN equals NaN), lists equal tuples.
bool equal(const Argument& a, const Argument& b);

inline Argument::Argument(std::vector<Argument> items)
    : m_kind(std::make_shared<const ArgumentList>(ArgumentList{std::move(items)})) {}
inline Argument::Argument(ArgumentList list) : m_kind(std::make_shared<const ArgumentList>(std::move(list))) {}
inline const std::vector<Argument>* Argument::list() const {
    const auto* found = get<ArgumentList>();
    return found ? &found->items : nullptr;
}

template <class Visit>
void Argument::forEachNode(Visit&& visit) const {
    if (Node* found = node()) visit(found);
    else if (const auto* items = list())
        for (const Argument& item : *items) item.forEachNode(visit);
    else if (const auto* slice = get<std::shared_ptr<const ArgumentSlice>>()) {
        (*slice)->start.forEachNode(visit);
        (*slice)->stop.forEachNode(visit);
        (*slice)->step.forEachNode(visit);
    } else if (const auto* dict = get<std::shared_ptr<const ArgumentDict>>())
        for (const auto& [key, item] : (*dict)->items) item.forEachNode(visit);
}

template <class Map>
Argument Argument::mapNodes(Map&& map) const {
    if (Node* found = node()) return Argument(static_cast<Node*>(map(found)));
    if (const auto* found = get<ArgumentList>()) {
        if (!holdsNode()) return *this;
        ArgumentList out{{}, found->tuple};
        out.items.reserve(found->items.size());
        for (const Argument& item : found->items) out.items.push_back(item.mapNodes(map));
        return out;
    }
    if (const auto* found = get<std::shared_ptr<const ArgumentSlice>>()) {
        const ArgumentSlice& slice = **found;
        return Argument(std::make_shared<const ArgumentSlice>(
            ArgumentSlice{slice.start.mapNodes(map), slice.stop.mapNodes(map), slice.step.mapNodes(map)}));
    }
    if (const auto* found = get<std::shared_ptr<const ArgumentDict>>()) {
        ArgumentDict out;
        for (const auto& [key, item] : (*found)->items) out.items.emplace_back(key, item.mapNodes(map));
        return Argument(std::make_shared<const ArgumentDict>(std::move(out)));
    }
    return *this;
}

}  // namespace cutaway
