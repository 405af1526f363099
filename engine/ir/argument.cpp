#include "engine/ir/argument.h"

#include <cmath>

namespace cutaway {

Argument::Argument(const Dims& dims) : Argument(std::vector<Argument>(dims.begin(), dims.end())) {}
Argument::Argument(const SymDims& dims) : Argument(std::vector<Argument>(dims.begin(), dims.end())) {}

std::optional<int64_t> Argument::asInt() const {
    if (const auto* value = get<int64_t>()) return *value;
    if (const auto* value = get<bool>()) return *value;
    return std::nullopt;
}
std::optional<double> Argument::asReal() const {
    if (const auto* value = get<double>()) return *value;
    if (auto value = asInt()) return static_cast<double>(*value);
    return std::nullopt;
}
bool Argument::isNumber() const {
    return get<bool>() || get<int64_t>() || get<double>() || get<std::complex<double>>() || get<Expr>();
}

bool Argument::holdsNode() const {
    bool found = false;
    forEachNode([&](const Node*) { found = true; });
    return found;
}

bool equal(const Argument& a, const Argument& b) {
    if (a.kind().index() != b.kind().index()) return false;
    return std::visit(
        [&](const auto& left) -> bool {
            using T = std::decay_t<decltype(left)>;
            const T& right = *b.get<T>();
            if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, Ellipsis>) return true;
            else if constexpr (std::is_same_v<T, double>)
                return left == right || (std::isnan(left) && std::isnan(right));
            else if constexpr (std::is_same_v<T, SubgraphRef>) return left.name == right.name;
            else if constexpr (std::is_same_v<T, OpRef>) return left.op == right.op;
            else if constexpr (std::is_same_v<T, LostTensor>) return left.text == right.text;
            else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentList>>) {
                return left == right || std::equal(left->items.begin(), left->items.end(), right->items.begin(),
                                                   right->items.end(), equal);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentSlice>>) {
                return equal(left->start, right->start) && equal(left->stop, right->stop) &&
                       equal(left->step, right->step);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentDict>>) {
                return std::equal(
                    left->items.begin(), left->items.end(), right->items.begin(), right->items.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
            } else return left == right;
        },
        a.kind());
}

}  // namespace cutaway
