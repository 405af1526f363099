#include "engine/ops/renamed.h"

namespace cutaway {

Value sameCall(Decomposition& d, std::string_view op, std::initializer_list<std::string_view> without) {
    std::vector<Argument> positional;
    NamedArguments keywords;
    const auto& params = d.op().schema()->params;
    for (size_t i = 0; i < params.size(); ++i) {
        if (std::find(without.begin(), without.end(), params[i].name) != without.end()) continue;
        if (params[i].keywordOnly) keywords.emplace_back(params[i].name, d.arg(i));
        else positional.push_back(d.arg(i));
    }
    return d.call(op, std::move(positional), std::move(keywords));
}

}  // namespace cutaway
