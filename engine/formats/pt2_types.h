#pragma once
// Sizes, types, symbols and provenance strings of .pt2 JSON (spec: input-formats §3.4, 3.6, 3.7). Shared by all graphs
// of one program.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "cutaway/result.h"
#include "engine/formats/json.h"
#include "engine/ir/module.h"

namespace cutaway {

class Pt2Types {
  public:
    /// {"as_int": 4} or {"as_expr": {"expr_str": …, "hint": …}}. Symbols met are noted with their hints.
    Result<SymInt> symInt(const Json& value, const std::string& where);
    /// Same for the three symbolic kinds; `dtype` is I64, F64 or Bool.
    Result<SymType> symValue(const Json& value, DType dtype, const std::string& where);
    Result<TensorType> tensor(const Json& meta, const std::string& where);
    Result<DType> dtype(const Json& code, const std::string& where) const;
    Result<Device> device(const Json& value, const std::string& where) const;
    Result<Layout> layout(const Json& code, const std::string& where) const;
    Result<MemoryFormat> memoryFormat(const Json& code, const std::string& where) const;

    /// Bounds: {"s77": {"min_val": 2, "max_val": 64}}.
    Result<void> readRanges(const Json& constraints, const std::string& where);
    const std::map<std::string, SymbolInfo>& symbols() const { return m_symbols; }

    /// Stack trace, innermost module, in shared strings. Keys that are unknown or malformed are left out.
    Provenance provenance(const Json& metadata);

  private:
    Result<Expr> expression(std::string_view text, const std::string& where);
    std::shared_ptr<const std::string> shared(std::string_view text);

    std::map<std::string, SymbolInfo> m_symbols;
    std::unordered_map<std::string, Expr> m_expressions;
    std::unordered_map<std::string, std::shared_ptr<const std::string>> m_strings;
};

}  // namespace cutaway
