#pragma once
// What torch.save writes: tensors and plain Python data in a zip (spec: input-formats §2). Nothing in the file is ever
// called: names outside the list of the spec are refused, all at once, before anything is made.
// Leaves alone: pickled modules (refused, with advice), files from before PyTorch 1.6.
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/zip_archive.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct SavedValue;
using SavedItems = std::vector<SavedValue>;
struct SavedDict;

/// A value that is recognised but not supported: a sparse or meta tensor, a script object.
struct SavedUnsupported {
    std::string what;
};

/// Plain data with tensors in it. Tensors over one storage in the file share one here.
struct SavedValue {
    std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, DType, Tensor,
                 SavedUnsupported, SavedItems, std::shared_ptr<const SavedDict>>
        kind;
    bool tuple = false;      // SavedItems: a tuple, not a list
    bool parameter = false;  // Tensor: wrapped as a Parameter

    const Tensor* tensor() const { return std::get_if<Tensor>(&kind); }
    const SavedItems* items() const { return std::get_if<SavedItems>(&kind); }
    const SavedDict* dict() const {
        const auto* found = std::get_if<std::shared_ptr<const SavedDict>>(&kind);
        return found ? found->get() : nullptr;
    }
    bool isNone() const { return kind.index() == 0; }
};
/// Items in written order; keys that are not strings become text.
struct SavedDict {
    std::vector<std::pair<std::string, SavedValue>> items;
    std::string ofClass = {};  // "module name": these are the fields of an object, not a dict
};

/// What becomes of an object of a class that is not in the list of the spec: no such file is read, or its fields are,
/// as they were pickled, without making the object.
enum class SavedObjects : uint8_t { Refused, AsFields };

/// The value that torch.load would give. Errors name the entry, or the refused names.
Result<SavedValue> readTorchSave(const ZipArchive& archive, SavedObjects objects = SavedObjects::Refused);
Result<SavedValue> readTorchSave(ByteSource source, const std::string& where,
                                 SavedObjects objects = SavedObjects::Refused);

/// The tensors of a state dict, nested dicts with their names joined by dots; other values are left out.
std::vector<std::pair<std::string, Tensor>> tensorsOf(const SavedValue& value);
/// Nested lists, tuples and dict values in order, flat: how PyTorch counts the inputs of a program.
void flatten(const SavedValue& value, std::vector<SavedValue>& out);

}  // namespace cutaway
