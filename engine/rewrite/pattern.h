#pragma once
// The texts of a rule (rule.h has the notation), parsed and bound to schemas. Matching is elsewhere (matcher.h).
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/argument.h"
#include "engine/ir/schema.h"

namespace cutaway {

/// An argument as written.
struct PatternItem {
    enum class Kind : uint8_t { Any, Name, Attribute, Star, Constant, List };
    Kind kind = Kind::Any;
    std::string name;  // Name, Attribute, Star
    Argument constant;
    std::vector<PatternItem> items;  // List
    bool tuple = false;              // List: as it is built
};

/// A statement as written.
struct PatternStatement {
    /// Repeated stands not for the items of a list, but for all calls that read a value that one of them reads.
    enum class Each : uint8_t { No, All, Some, Repeated };
    std::string name;              // made up ("%1") for nested calls
    std::vector<std::string> ops;  // full names of the choice; of methods bare ones
    bool method = false;           // the first positional argument is the receiver
    std::vector<PatternItem> positional;
    std::vector<std::pair<std::string, PatternItem>> keywords;
    bool rest = false;  // "..." stands at the end
    bool shared = false;
    int readers = 0;  // exactly that many, wherever they are; 0 = not asked
    Each each = Each::No;
};

struct PatternText {
    std::vector<PatternStatement> statements;
    std::vector<PatternItem> results;
    std::vector<std::vector<std::string>> different;  // names of values that are not the same
};

/// Errors have the line of the text in `where`.
Result<PatternText> parsePatternText(std::string_view text);

/// An argument of a pattern, ready for matching. Slots number the names of the pattern.
struct PatternArg {
    enum class Kind : uint8_t { Any, Value, Attribute, Call, Constant, List };
    Kind kind = Kind::Any;
    int slot = -1;  // Value, Attribute, Call
    Argument constant;
    std::vector<PatternArg> items;  // List: without the star
    int starAt = -1;                // List: items before the star; -1 = no star
    int starSlot = -1;              // -1: the star's name is _
};

/// A call, in one form per op that it may be; for a Python function, one form per signature.
struct PatternCall {
    struct Form {
        const Op* op = nullptr;
        const Schema* signature = nullptr;  // of a Python function; null of one about which nothing is known
        std::vector<PatternArg> args;       // one per parameter; without a signature the positional ones as written
        bool commutes = false;
        // As written, of Python functions:
        std::vector<PatternArg> positional;
        std::vector<std::pair<std::string, PatternArg>> keywords;
        bool rest = false;
    };
    using Each = PatternStatement::Each;
    int slot = -1;
    std::vector<Form> forms;
    bool shared = false, result = false;
    int exactReaders = 0;  // not 0: that many, wherever they are
    Each each = Each::No;  // stands for the items of a list, or for siblings
    bool perItem = false;  // `each`, or read by nobody but such a call: matched anew for every item or sibling
    bool readByEach = false;
    size_t readers = 0;  // calls of the pattern that read it
};

struct Pattern {
    std::vector<std::string> names;           // by slot
    std::vector<int> callOfSlot;              // position in calls, -1 for other names
    std::vector<PatternCall> calls;           // operands before readers
    std::vector<int> results;                 // slots; the first is where matching starts
    std::vector<std::vector<int>> different;  // slots of values that are not the same

    /// Whether the result stands for siblings, too.
    bool repeats() const { return callAt(results[0]).each == PatternCall::Each::Repeated; }
    int slotOf(std::string_view name) const;
    const PatternCall& callAt(int slot) const {
        return calls[static_cast<size_t>(callOfSlot[static_cast<size_t>(slot)])];
    }
    bool isCall(int slot) const { return slot >= 0 && callOfSlot[static_cast<size_t>(slot)] >= 0; }
    /// The same text for patterns that differ in names only.
    std::string normalized() const;
};

/// Whether any Python function (torch, operator) or operator with a row has a name that begins so.
bool isLibrary(std::string_view name);
/// Whether a rule may name this op although it has no row: a Python function, or an operator of a library without any
/// row.
bool mayBeFunction(std::string_view name);

/// Errors: an op without a row, arguments that do not fit the schema, a result that is not a call, a call nobody reads.
Result<Pattern> compilePattern(const PatternText& text);

/// Constants as rules compare them: numbers by value whatever their kind, lists item by item.
bool sameConstant(const Argument& a, const Argument& b);
/// As FX text writes it; nodes as `name`.
std::string constantText(const Argument& value);

}  // namespace cutaway
