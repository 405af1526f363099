#pragma once
// Operator schemas in PyTorch's own notation: "aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) ->
// Tensor".
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/argument.h"

namespace cutaway {

enum class ParamKind : uint8_t {
    Tensor,
    Int,
    Float,
    Bool,
    Number,
    String,
    DType,
    Layout,
    Device,
    MemoryFormat,
    Generator,
    Any,
};

struct Param {
    std::string name;
    ParamKind kind = ParamKind::Any;
    bool list = false;          // int[], Tensor[]
    int listSize = 0;           // int[2]: a single number stands for two equal ones
    bool itemOptional = false;  // Tensor?[]
    bool optional = false;      // None allowed
    bool keywordOnly = false;
    bool hasDefault = false;
    Argument defaultValue;
    char alias = 0;        // 'a' in Tensor(a!); 0 = none
    bool mutated = false;  // the !
};

struct Return {
    ParamKind kind = ParamKind::Tensor;
    bool list = false;
    char alias = 0;
    bool mutated = false;
};

struct Schema {
    std::string name;  // "aten.add.Tensor"; an overload is always named, "default" included
    std::vector<Param> params;
    std::vector<Return> returns;

    /// Position of a parameter, -1 if there is none of that name.
    int find(std::string_view param) const;
    /// Several results, or a list: the node's value is a tuple and is read through getitem.
    bool returnsTuple() const { return returns.size() > 1 || (returns.size() == 1 && returns[0].list); }
    bool mutates() const;
};

Result<Schema> parseSchema(std::string_view text);

/// True if the value may stand for the parameter. A node may be anything that is known at run time only; a single
/// number may stand for a list of a fixed length, or of integers.
bool accepts(const Param& param, const Argument& value);

}  // namespace cutaway
