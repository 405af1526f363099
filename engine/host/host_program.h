#pragma once
// The host program: what calls the kernels and libraries of a compiled graph, and where values lie, as data. The
// executor interprets it, the printer makes C++ of it (codegen/host_printer.h); both give the same bits.
//
// Sizes are expressions over the symbols of a function, which a run solves from its inputs, so that one program serves
// all sizes that its checks allow. A step that finds a size in data (nonzero) ends a segment: memory of what comes
// after is laid out when the size is known.
#include <optional>
#include <string>
#include <vector>

#include "cutaway/plugins.h"
#include "engine/ir/argument.h"
#include "engine/ir/graph.h"
#include "engine/ir/size_guards.h"
#include "engine/ir/type.h"
#include "engine/libraries/plugin_rows.h"
#include "engine/loops/loop_nest.h"

namespace cutaway {

/// A tensor of a function.
struct HostValue {
    enum class Kind : uint8_t {
        Input,      // parameter `index`
        Constant,   // `index` of the program's constants
        Slot,       // `offset` bytes after the start of slot `index`
        StepOwned,  // memory of its own, which a step returns
        View,       // of value `index`, `offset` elements after its first
    };
    Kind kind = Kind::Slot;
    int64_t index = -1;
    SymInt offset = 0;
    TensorType type;
    std::string name;       // of the node that made it
    bool constant = false;  // never changes between runs: libraries may repack it once
    bool written = false;   // Input: the function writes to it
};
/// Memory of a context that several values use one after the other.
struct HostSlot {
    size_t segment = 0;
    SymInt bytes = 0;  // the largest of its values
};
/// What a run is given: a tensor, or a number that a symbol stands for (`type` is a SymType).
struct HostParameter {
    std::string name;
    ValueType type;
    bool constant = false;  // the same in every run
    bool state = false;     // a buffer that the function writes to
    /// Of a backward: the result of the program's first function, its forward, that it is given; and the constant
    /// parameter of the forward whose memory that is. Else -1.
    int64_t saved = -1, shared = -1;
    /// Whether an exported program has its value, in place of who runs it.
    bool isHeld() const { return constant || state; }
};
/// symbol = (size - offset) / scale, where the size is that of a parameter, or the number that it is. A remainder is an
/// input that does not fit.
struct HostSymbol {
    std::string name;
    size_t parameter = 0;
    int64_t dim = -1;  // -1: the parameter is a number
    int64_t scale = 1, offset = 0;
    int64_t least = 0;  // the range that the graph was exported for
    std::optional<int64_t> most;
};

/// A kernel's code: functions that run one after the other (codegen/cpp_printer.h says their signature).
struct HostKernel {
    std::string name;  // "kernel3"
    struct Launch {
        std::string function;  // named after what it does
        SymInt range;          // steps of its loop over parts
        int64_t unit = 1;      // steps that stay together (LoopNest::unit)
        int threads = 1;       // of a block, on GPUs
    };
    std::vector<Launch> launches;
    std::vector<std::string> sizes;    // size symbols that it reads
    std::vector<Workspace> workspace;  // buffers after those of its calls
    std::vector<bool> written;         // of each buffer of a call
    bool checks = false;               // an index or a divisor comes from data
};

enum class HostStepKind : uint8_t {
    Kernel,
    Library,
    Reference,  // a function of the engine, which no exported program can have
    Functions,  // runs other functions of the program: cond, while_loop, map, scan; SubgraphRefs name them
};
/// One call.
struct HostStep {
    HostStepKind kind = HostStepKind::Kernel;
    std::string node;  // the call's name in the graph; of a kernel those of all that it computes
    /// For the sizes that were scheduled for, to estimate its time: bytes that it reads and writes, those of all
    /// operands and results, operations.
    int64_t bytes = 0, spanned = 0, flops = 0;
    std::vector<std::string> ops{};  // that it computes, only where tests ask for faults of kernels

    // kernels
    size_t kernel = 0;
    std::vector<int64_t> buffers;  // value numbers, those of its workspace last
    std::string checking;          // nodes whose indices or divisors come from data; empty if there are none

    // others
    std::string op, library;          // the operator's full name; the CtLibrary's
    std::vector<std::string> params;  // of a library's call: the operator's parameters, one for each of `args`
    std::vector<Argument> args;       // nodes are those of HostFunction::names; sizes may be expressions
    std::vector<int64_t> operands;    // value numbers of the nodes among them
    ValueType type;
    std::vector<int64_t> results;  // value numbers, -1 for results that are not tensors or that nobody asked for
    /// Sizes that follow from what the step returns: symbol, result, and its dim (-1: the number in it); or from sizes
    /// that are known then, which stand in `value`.
    struct BoundSize {
        std::string symbol;
        size_t result = 0;
        int64_t dim = -1;
        Expr value;
    };
    std::vector<BoundSize> found;
};

/// A result that is a number: a literal, or one that follows from the sizes of the inputs and from those that steps
/// find.
struct HostNumber {
    size_t result = 0;
    DType dtype = DType::I64;
    SymInt value = 0;
    std::optional<double> real;  // in place of `value` where the number is a floating literal
};

struct HostFunction {
    std::string name;  // "run"; of training "forward" and "backward"
    std::vector<HostParameter> parameters;
    std::vector<HostSymbol> symbols;
    std::vector<SizeGuard> guards;  // each is checked as soon as a run knows the symbols in it
    std::vector<HostValue> values;
    std::vector<HostSlot> memory;
    std::vector<HostStep> steps;
    std::vector<size_t> segments;  // the first step of each; the first is 0
    std::vector<int64_t> results;  // value numbers; -1 for a returned None, for text and for numbers
    std::vector<HostNumber> returnedNumbers;
    /// Placeholders that HostStep::args refer to, and the value number of each by its id.
    std::unique_ptr<Graph> names = std::make_unique<Graph>();
    std::vector<int64_t> numbers;
    int64_t numberOf(const Node& node) const { return numbers[index(node.id())]; }
    /// A parameter that is the same in every run: whoever calls the function has it.
    bool isConstantInput(int64_t number) const {
        const HostValue* const value = number < 0 ? nullptr : &values[static_cast<size_t>(number)];
        return value != nullptr && value->kind == HostValue::Kind::Input && value->constant;
    }
    /// The first step of a segment, and the one after its last.
    std::pair<size_t, size_t> stepsOf(size_t segment) const {
        return {segments[segment], segment + 1 < segments.size() ? segments[segment + 1] : steps.size()};
    }
};
struct HostProgram {
    Device device;  // on which it runs
    std::vector<HostKernel> kernels;
    std::vector<std::string> constants;  // their names
    std::vector<HostFunction> functions;
    std::vector<PluginLibrary> plugins;  // those that its steps call, by name
    PluginLimits pluginLimits;           // of their processes
};

/// The plugin's library of that name that the program calls; null: it is none of a plugin's.
const PluginLibrary* pluginOf(const HostProgram& program, std::string_view library);

/// Whether a library's call in it rounds f32 to TF32 (kAllowTf32).
bool roundsToTf32(const HostProgram& program);

/// As the Kernels window and dumps show it.
std::string text(const HostProgram& program);

}  // namespace cutaway
