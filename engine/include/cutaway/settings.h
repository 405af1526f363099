#pragma once
// Every setting there is, in one table: options of a request, and settings of optional passes.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/request.h"

namespace cutaway {

struct Setting {
    enum class Kind : uint8_t { Flag, Integer, Real, Choice, File, Name, List };
    std::string_view owners;  // kRequest, or passes by the names that --enable takes, separated by blanks; empty: any
    std::string_view key;     // PyTorch's name where it has one
    Kind kind = Kind::Flag;
    std::string_view initial;    // what holds if nothing is said
    std::string_view what;       // one sentence
    double least = 0, most = 0;  // of numbers
    std::string_view choices;    // of Choice, separated by blanks; of Name and List how a value is written: "STAGE"
    // Of a request's options:
    std::string_view label = {};  // of its field in the compile dialog; empty: it is asked for elsewhere, or not at all
    std::string_view modes = {};  // those in which it means something, separated by blanks; empty: all
    bool ofGpus = false;          // it means something with --device cuda alone
    Releases releases = {};       // those that have it; others refuse it

    bool belongsTo(std::string_view owner) const;
    /// Whether the option means something in a mode.
    bool isFor(Mode mode) const;
    /// "a whole number from 2 on", "true or false", "one of cpu cuda".
    std::string takes() const;
    /// Whether the text is such a value.
    bool fits(std::string_view value) const;
};
/// As `most`: there is no largest value.
constexpr double kMany = 1e15;
/// The owner of a request's options.
constexpr std::string_view kRequest = "compile";
/// In the order of the command line, then of the passes.
std::span<const Setting> settings();
/// What a request holds for one of its options, as the command line has it: a value for each time that the option would
/// be given ("" of a flag), nothing if it has its initial value. Empty for files, whose text a request holds.
std::vector<std::string> valuesOf(const CompileRequest& request, std::string_view option);

/// A name that --enable takes although it is not a pass: it only carries settings or switches passes on.
struct Switch {
    std::string_view name, what;
    Releases releases = {};  // those that have it
};
std::span<const Switch> switches();

/// Errors: a key that its pass does not have, a value of the wrong kind or out of range, a key given twice.
Result<void> checkSettings(const OptionalPass& wanted);

}  // namespace cutaway
