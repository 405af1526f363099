#include "engine/text/parse.h"

#include <map>
#include <optional>

#include "engine/text/function_builder.h"

namespace cutaway {

Result<std::unique_ptr<Module>> parseText(std::string_view given, const ParseOptions& options) {
    using namespace fxtext;
    CT_TRY(auto tree, parseSyntax(given));
    std::unique_ptr<Module> module;
    std::optional<ParseState> kept;
    std::map<std::string, SymDims, std::less<>> strides;
    do {  // again as often as one more input is found to have strides of its own
        kept.emplace(ParseState{.tree = *tree,
                                .options = options,
                                .ops = {},
                                .symbols = {},
                                .remarks = {},
                                .error = {},
                                .nextId = 0,
                                .strides = std::move(strides)});
        module = FunctionBuilder(*kept, *tree->root).build();
        strides = kept->strides;
    } while (!kept->error && kept->again);
    ParseState& state = *kept;
    if (state.error) return std::move(*state.error);
    for (const std::string& symbol : state.symbols) module->symbols.try_emplace(symbol);
    for (std::string_view comment : tree->headComments) readSymbolComment(comment, module->symbols);
    if (tree->root->classForm) readSignature(std::string_view(tree->source.text).substr(tree->end), *module);
    module->origin.file = options.file;
    module->origin.format = "FX text";
    module->origin.remarks = std::move(state.remarks);
    return module;
}

}  // namespace cutaway
