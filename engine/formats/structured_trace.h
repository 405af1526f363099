#pragma once
// Structured traces, what TORCH_TRACE writes and tlparse reads (spec: input-formats §6.2, TRC-1..5): every graph of the
// log with the compilation and the stage it belongs to; everything else counted.
#include "engine/formats/open.h"

namespace cutaway {

/// Graphs are named "FRAME/COMPILATION STAGE" ("0/0 aot_joint_graph"), in file order. A payload whose checksum does not
/// fit is flagged in the remarks and still read. Errors: a record that is not JSON, by its line; no graph at all.
Result<OpenedFile> readStructuredTrace(std::string_view text, const std::string& path, const OpenOptions& options);

}  // namespace cutaway
