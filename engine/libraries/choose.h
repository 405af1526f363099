#pragma once
// Which calls libraries compute: one row an operator, with the test that says of a call why its library does not take
// it.
#include <optional>
#include <span>
#include <string>

#include "engine/ir/node.h"
#include "engine/libraries/library_list.h"
#include "engine/loops/target.h"

namespace cutaway {

/// What a library is linked with beside our own code.
enum class LinkedWith : uint8_t { Nothing, OneDnn, Lapack };

struct PluginLibrary;

/// A row of library_list.h, or a plugin's library (plugin_rows.h). There is one object of each, compared by address.
struct Library {
    std::string_view name;      // of its CtLibrary (libraries/library.h); "PLUGIN.LIBRARY"
    std::string_view function;  // that returns it (runtime/libraries/table.h)
    DeviceType device;          // whose memory its calls read and write
    LinkedWith linked;
    std::span<const std::string_view> files;  // beginnings of the paths, under engine, of what it is made of
    const PluginLibrary* plugin = nullptr;
};
#define CUTAWAY_LIBRARY(constant, function, name, device, linked, version, ...) \
    inline constexpr std::string_view constant##Files[] = {__VA_ARGS__};        \
    inline constexpr Library constant{name, #function, DeviceType::device, LinkedWith::linked, constant##Files};
CUTAWAY_LIBRARIES(CUTAWAY_LIBRARY)
#undef CUTAWAY_LIBRARY
std::span<const Library* const> allLibraries();

struct LibraryRow {
    std::string_view op;  // "aten.mm.default"
    const Library& library;
    /// Empty: the library computes this call.
    std::string (*whyNot)(const Node& call, const TargetInfo& target);
    /// Why the engine's reference kernel computes the call where there is an engine; null or empty: it does not.
    std::string (*whySlow)(const Node& call) = nullptr;
    /// The operand whose elements the library takes before it writes its result to their places, so that the result may
    /// lie over it if nobody else reads it; null: none.
    const Node* (*over)(const Node& call) = nullptr;
    /// The layout in which the library writes the first result, and reads what it is made of, without copies; none: any
    /// layout is as fast.
    std::optional<MemoryFormat> layout = std::nullopt;

    /// A function of our own, portable or for GPUs. It also computes the operator in place (add_). Kernels are faster,
    /// so these rows stand behind all others: the first of an operator's rows that takes a call computes it.
    bool isFunction() const { return &library == &kPortable || &library == &kGpuFunctions; }
};
std::span<const LibraryRow> libraryRows();
/// The row of the target's device that computes the call; null if none does. `alone`: in a program that has no engine
/// beside it (exported).
const LibraryRow* libraryRowOf(const Node& call, const TargetInfo& target, bool alone = false);
/// Why no library computes a call, as a sentence (of the first that has the operator), or empty if one does.
std::string whyNoLibrary(const Node& call, const TargetInfo& target);
/// The row by which exported programs compute an operator whose results' sizes follow from its data; null: none does.
const LibraryRow* finderOf(std::string_view op, const TargetInfo& target);

/// Whether the row, called for the target, rounds the call's f32 operands to TF32.
bool roundsToTf32(const LibraryRow& row, const Node& call, const TargetInfo& target);
/// What a library's call is told behind the operator's own arguments where it does.
constexpr std::string_view kAllowTf32 = "allow_tf32";
/// What a call of cuBLASLt is told where it is to time its candidates (TargetInfo::measuresProducts).
constexpr std::string_view kMeasure = "measure_candidates";

/// What computes the call, as users read it: "mm (oneDNN)", "convolution (cuDNN, TF32)", "portable:
/// aten.cumsum.default".
std::string libraryText(const LibraryRow& row, const Node& call, const TargetInfo& target);

/// Whether a concatenation is made by copying its parts: they are many, tensors of the result's dtype and rank.
bool isCopiedConcatenation(const Node& node, const TargetInfo& target);

}  // namespace cutaway
