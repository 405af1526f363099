#pragma once
// FX text to Module: our short form ("def forward(x: ...):" with aten.* calls) and everything PyTorch's print_readable
// and its relatives write (spec: input-formats §4). The parser opens odd graphs: operators without a row become opaque
// ops, a type that contradicts the operator's rule is kept as written; both leave a remark in ModuleOrigin::remarks.
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cutaway/result.h"
#include "engine/ir/module.h"

namespace cutaway {

struct ParseOptions {
    /// For ModuleOrigin::file.
    std::string file;
    /// Types of placeholders and attributes that the text does not annotate, by name as written.
    std::map<std::string, ValueType> types;
};

/// Errors have "line:column" in `where` and say what, by which rule, in which line. Texts over 256 MiB and nesting over
/// 256 levels are refused. Node ids are unique across the module and its subgraphs.
Result<std::unique_ptr<Module>> parseText(std::string_view text, const ParseOptions& options = {});

}  // namespace cutaway
