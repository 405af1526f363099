#pragma once
// A call of an op as text: "aten.topk.default(f32[4, 3], 99, dim = -1)", the arguments in the notation of samples
// (op_samples.h).
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/op.h"

namespace cutaway::testing {

struct CallText {
    const Op* op = nullptr;
    std::string arguments;
    std::string text() const { return op ? op->name() + "(" + arguments + ")" : std::string(); }
};
/// Errors: no such op; the brackets do not fit. Arguments are read when the call is built.
Result<CallText> parseCall(std::string_view text);

/// The calls of a file of the corpus: one per line, after what must become of it.
std::vector<CallText> callsIn(const std::string& path);

/// One argument, taken apart as far as mutations need it.
struct CallItem {
    enum class Kind : uint8_t { Word, Tensor, List } kind = Kind::Word;
    std::string keyword;
    std::string word;  // Word: a number, True, 'text', torch.float32; Tensor: its dtype
    std::vector<int64_t> sizes, strides;
    bool strided = false;
    std::string draw;             // Tensor: what follows its type
    std::vector<CallItem> items;  // List
};
std::vector<CallItem> parseItems(std::string_view arguments);
std::string printItems(const std::vector<CallItem>& items);

}  // namespace cutaway::testing
