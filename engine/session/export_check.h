#pragma once
// Loads and runs an export before it is put in place, as its user would: by its main.c, in a process of its own.
#include "cutaway/export.h"
#include "engine/exporting/export_texts.h"
#include "engine/formats/safetensors.h"
#include "engine/ir/module.h"

namespace cutaway {

struct CheckedExport {
    std::string name;  // of the library
    ExportForm form;
    const Module* module = nullptr;                     // that was exported
    const std::vector<Tensor>* bound = nullptr;         // a tensor for each of its placeholders
    const NamedTensors* weights = nullptr;              // by the ports' names
    const std::vector<std::string>* outputs = nullptr;  // their names
    double timeoutSeconds = 300;                        // of each part of it
};
/// `folder`: with main.c, inputs.safetensors and the library. Errors: cancelled, no room for temporary files; whatever
/// is wrong with the export is an outcome.
Result<ExportCheck> checkExported(const std::string& folder, const CheckedExport& exported, const Progress& progress);

}  // namespace cutaway
