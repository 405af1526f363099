#pragma once
// A plugin's judge of numbers (plugins/cutaway_plugin.h), asked about two tensors: by the session, and by a worker that
// keeps the values to itself.
#include <memory>

#include "engine/libraries/plugin_rows.h"
#include "engine/support/plugin_process.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct JudgeAnswer {
    bool takes = false;
    std::string sentence;
};

/// A judge, which other processes can ask, too. `library.name`: "PLUGIN.JUDGE".
class PluginJudge {
  public:
    /// `process`: the plugin's own; null: one of this judge's.
    explicit PluginJudge(PluginLibrary plugin, std::shared_ptr<PluginProcess> process = nullptr);
    /// Whether `actual` may stand for `expected`. None is equal to none but None, and nobody is asked. Errors: what has
    /// become of its process, with the plugin's and the judge's names.
    Result<JudgeAnswer> ask(const Tensor& actual, const Tensor& expected, const Stopped& stopped = {}) const;

  private:
    PluginLibrary m_plugin;
    std::shared_ptr<PluginProcess> m_process;
};

/// What `judge` says as a verdict's sentence: "the judge takes it: the cosine is 1".
std::string sentenceOf(const JudgeAnswer& answer);

}  // namespace cutaway
