#pragma once
// The quoted types of FX text: "f32[8, 16][16, 1]cuda:0", "Sym(s77)", "DTensor(f32[4][1]cpu, S(0))" (spec:
// input-formats §4.2).
#include <set>
#include <string>
#include <string_view>

#include "cutaway/result.h"
#include "engine/ir/type.h"

namespace cutaway::fxtext {

struct Annotation {
    ValueType type;           // opaque when the text names a type that we do not know
    bool hasStrides = false;  // else row-major was filled in
    bool hasDevice = false;   // else the CPU was filled in
    std::string subclass;     // "DTensor" where a tensor subclass was written; `type` is its core
};

/// Whether it is a dtype of PyTorch, by either of its names, that Cutaway has no elements of. Tensors of it are opaque.
bool isForeignDtype(std::string_view name);
/// Reads what stands between the quotes. Names of size symbols are added to `symbols`. Errors name the rule; the caller
/// adds the line.
Result<Annotation> parseAnnotation(std::string_view text, std::set<std::string>& symbols);

}  // namespace cutaway::fxtext
