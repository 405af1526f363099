#include "engine/rewrite/pass_context.h"

#include <algorithm>
#include <mutex>

namespace cutaway {
namespace {

/// Numbers remembered where no service keeps them, by target and key, so that devices do not mix.
struct Memory {
    std::mutex mutex;
    std::map<std::string, double> values;
};
Memory& memory() {
    static Memory all;
    return all;
}
std::string keyOf(const CompileRequest& request, const std::string& key) {
    return (request.target == Target::Cuda ? "cuda " : "cpu ") + key;
}

}  // namespace

template <class Ask>
std::optional<double> PassContext::answer(std::string_view kind, const std::string& question, Ask&& ask) const {
    const auto same = [&](const Measurement& one) { return one.kind == kind && one.question == question; };
    if (m_recorded) {
        auto before = std::count_if(m_asked.begin(), m_asked.end(), same);
        const Measurement* last = nullptr;
        for (const Measurement& one : *m_recorded) {
            if (!same(one)) continue;
            last = &one;
            if (before-- == 0) break;
        }
        if (last) return m_asked.emplace_back(*last).value;
    }
    return m_asked.emplace_back(Measurement{std::string(kind), question, ask()}).value;
}

std::optional<double> PassContext::timeGraph(const std::string& graph) const {
    return answer("time", graph, [&]() -> std::optional<double> {
        return m_hooks && m_hooks->timeGraph ? m_hooks->timeGraph(graph) : std::nullopt;
    });
}

std::optional<double> PassContext::deviceFact(const std::string& fact) const {
    return answer("fact", fact, [&]() -> std::optional<double> {
        return m_hooks && m_hooks->deviceFact ? m_hooks->deviceFact(fact) : std::nullopt;
    });
}

std::optional<double> PassContext::recall(const std::string& key) const {
    return answer("recall", key, [&]() -> std::optional<double> {
        if (m_hooks && m_hooks->recall) return m_hooks->recall(key);
        const std::lock_guard lock(memory().mutex);
        const auto found = memory().values.find(keyOf(*m_request, key));
        return found == memory().values.end() ? std::nullopt : std::optional(found->second);
    });
}

void PassContext::remember(const std::string& key, double value) const {
    if (m_recorded) return;  // it was remembered when the answers were recorded
    if (m_hooks && m_hooks->remember) return m_hooks->remember(key, value);
    const std::lock_guard lock(memory().mutex);
    memory().values[keyOf(*m_request, key)] = value;
}

}  // namespace cutaway
