#pragma once
// The texts of a rule (rule.h has the notation), read and bound to schemas. Knows nothing of matching.
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/argument.h"

namespace cutaway {

/// An argument as written.
struct PatternItem {
    enum class Kind : uint8_t { Any, Name, Attribute, Star, Constant, List };
    Kind kind = Kind::Any;
    std::string name;                 // Name, Attribute, Star
    Argument constant;
    std::vector<PatternItem> items;   // List
};

/// A statement as written.
struct PatternStatement {
    std::string name;                 // made up ("%1") for nested calls
    std::vector<std::string> ops;     // full names of the choice
    std::vector<PatternItem> positional;
    std::vector<std::pair<std::string, PatternItem>> keywords;
    bool rest = false;                // "..." stands at the end
    bool shared = false;
};

struct PatternText {
    std::vector<PatternStatement> statements;
    std::vector<PatternItem> results;
};

/// Errors have the line of the text in `where`.
Result<PatternText> parsePatternText(std::string_view text);

/// An argument of a pattern, ready for matching. Slots number the names of the pattern.
struct PatternArg {
    enum class Kind : uint8_t { Any, Value, Attribute, Call, Constant, List };
    Kind kind = Kind::Any;
    int slot = -1;                    // Value, Attribute, Call
    Argument constant;
    std::vector<PatternArg> items;    // List: without the star
    int starAt = -1;                  // List: items before the star; -1 = no star
    int starSlot = -1;                // -1: the star's name is _
};

/// A call with one form per op of its choice.
struct PatternCall {
    struct Form {
        const Op* op = nullptr;
        std::vector<PatternArg> args;   // one per schema parameter
        bool commutes = false;
    };
    int slot = -1;
    std::vector<Form> forms;
    bool shared = false, result = false;
    size_t readers = 0;                 // calls of the pattern that read it
};

struct Pattern {
    std::vector<std::string> names;     // by slot
    std::vector<int> callOfSlot;        // position in calls, -1 for other names
    std::vector<PatternCall> calls;     // operands before readers
    std::vector<int> results;           // slots; the first is where matching starts

    int slotOf(std::string_view name) const;
    /// The same text for patterns that differ in names only.
    std::string normalized() const;
};

/// Errors: an op without a row, arguments that do not fit the schema, a result that is no call, a call nobody reads.
Result<Pattern> compilePattern(const PatternText& text);

/// Constants as rules compare them: numbers by value whatever their kind, lists item by item.
bool sameConstant(const Argument& a, const Argument& b);
/// As FX text writes it; nodes as `name`.
std::string constantText(const Argument& value);

}  // namespace cutaway
