#include "engine/runtime/plugin_judge.h"

#include "cutaway/words.h"

namespace cutaway {
namespace {

constexpr size_t kMostSentence = 4096;

std::string judgedType(const Tensor& tensor) {
    std::string out = std::string(info(tensor.dtype()).abbreviation) + " " + std::to_string(tensor.sizes().size());
    for (const int64_t size : tensor.sizes()) out += " " + std::to_string(size);
    return out;
}
std::string judgedBytes(const Tensor& tensor) {
    const Tensor dense = tensor.contiguous();
    return {static_cast<const char*>(dense.data()), dense.bytes()};
}

}  // namespace

PluginJudge::PluginJudge(PluginLibrary plugin, std::shared_ptr<PluginProcess> process)
    : m_plugin(std::move(plugin)), m_process(std::move(process)) {
    if (m_process) return;
    m_process = std::make_shared<PluginProcess>(m_plugin.file, m_plugin.stamp, true);
    m_process->letStartProcesses(m_plugin.starts);
}

Result<JudgeAnswer> PluginJudge::ask(const Tensor& actual, const Tensor& expected, const Stopped& stopped) const {
    if (!actual.defined() || !expected.defined())
        return JudgeAnswer{actual.defined() == expected.defined(), "one of the two is None"};
    PluginCall call;
    call.kind = "judge";
    call.index = m_plugin.index;
    call.name = m_plugin.title + ":";
    call.file = judgedType(actual) + "|" + judgedType(expected);
    const std::string given = judgedBytes(actual);
    call.work = given;
    call.settings = {judgedBytes(expected)};
    CT_TRY(const PluginReply reply, m_process->call(call, stopped));
    JudgeAnswer answer{reply.yes, {}};
    if (reply.said.size() >= 2 && reply.said[0] == "say")
        answer.sentence = visibleText(reply.said[1].substr(0, kMostSentence));
    return answer;
}

std::string sentenceOf(const JudgeAnswer& answer) {
    return std::string(answer.takes ? "the judge takes it" : "the judge refuses it") +
           (answer.sentence.empty() ? "" : ": " + answer.sentence);
}

}  // namespace cutaway
