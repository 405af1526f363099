#include "engine/trials/oracle.h"

#include <algorithm>

#include "cutaway/plugins.h"
#include "engine/support/elapsed.h"
#include "engine/support/hash.h"
#include "engine/support/threads.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

using Clock = std::chrono::steady_clock;

MakeTester testersOf(const MinifyOptions& options, std::shared_ptr<const TensorTable> table) {
    const TrialLimits limits{options.timeoutSeconds, options.memoryBytes};
    return options.check == MinifyCheck::Command ? commandTesters(options.command, options.match, limits)
                                                 : forkingTesters(std::move(table), limits);
}

std::shared_ptr<const TensorTable> tableOf(BaseValues& values) {
    return std::make_shared<const TensorTable>([&values] {
        auto all = values.all();
        return all ? std::move(*all) : std::vector<Tensor>();
    });
}

/// Found by comparing what graphs compute.
bool isComputed(FailureKind kind) { return kind == FailureKind::Numbers || kind == FailureKind::NonFinite; }

TrialCheck::Level levelOf(MinifyCheck check) {
    switch (check) {
        case MinifyCheck::Numbers: return TrialCheck::Level::Numbers;
        case MinifyCheck::Nan: return TrialCheck::Level::NonFinite;
        case MinifyCheck::Crash:
        case MinifyCheck::Command: break;
    }
    return TrialCheck::Level::Compiles;
}

/// The calls near which a trial went wrong; of a process that died, the node of its last rewrite, if the graph has it.
std::vector<std::vector<std::string>> nearOf(const TrialOutcome& outcome, const Module& module) {
    if (!outcome.near.empty() || !outcome.lastRewrite) return outcome.near;
    const std::string& node = outcome.lastRewrite->node;
    if (module.graph().findByName(node) == nullptr) return {};
    return {{node}};
}

}  // namespace

Oracle::Oracle(const MinifyOptions& options, Journal journal, BaseValues values, Listener listener,
               const Progress& progress)
    : m_options(options),
      m_journal(std::move(journal)),
      m_values(std::move(values)),
      m_listener(std::move(listener)),
      m_progress(progress),
      m_check{levelOf(options.check), options.backend, options.tolerance},
      m_pool(options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
             testersOf(options, tableOf(m_values))) {
    if (options.check == MinifyCheck::Numbers) m_check.judge = judgeOf(options.command).value_or("");
}

Result<TrialJob> Oracle::jobOf(const Candidate& candidate, bool withValues) {
    TrialJob job;
    job.graph = printText(*candidate.module).text;
    job.stage = candidate.module->origin.stage;
    job.request = candidate.request;
    job.check = m_check;
    if (!withValues) return job;
    CT_TRY_VOID(m_values.fetch());
    const std::vector<Node*> inputs = candidate.module->graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
        const InputSpec& spec = candidate.module->inputs[i];
        if (!spec.isGiven()) {
            const TensorType* type = inputs[i]->type().tensor();
            if (type == nullptr || candidate.module->tensors.contains(spec.target)) continue;
            if (Tensor made = m_values.syntheticWeight(spec.target, *type); made.defined())
                job.syntheticWeights.emplace_back(spec.target, std::move(made));
            continue;
        }
        const auto found = candidate.values ? candidate.values->find(inputs[i]->name()) : NamedValues::const_iterator();
        const bool has = candidate.values && found != candidate.values->end();
        job.inputs.push_back(has ? found->second : m_values.of(*inputs[i]));
    }
    for (const auto& [name, tensor] : candidate.module->tensors) job.constants.emplace_back(name, tensor);
    return job;
}

std::string Oracle::keyOf(const TrialJob& job) const {
    Hasher hash;
    hash.add(std::string_view(job.graph)).add(std::string_view(job.request.text()));
    hash.add(static_cast<int>(job.check.level)).add(static_cast<int>(job.check.backend));
    hash.add(static_cast<int>(job.check.namesPass)).add(std::string_view(job.check.pass));
    return hash.finish().hex();
}

bool Oracle::usesValues() const {
    return m_check.level != TrialCheck::Level::Compiles || m_options.check == MinifyCheck::Command;
}

bool Oracle::isWanted(const TrialOutcome& outcome) const {
    return outcome.failure && isSameFailure(m_signature, *outcome.failure);
}

Result<void> Oracle::mayGoOn() {
    if (m_progress.cancelled()) return Error{ErrorCode::Cancelled, "the search was stopped", {}, {}};
    m_usedUp = m_options.maxTrials > 0 && m_trials >= m_options.maxTrials;
    if (m_usedUp) return Error{ErrorCode::Limit, "the number of trials is used up", {}, {}};
    return {};
}

Result<TrialOutcome> Oracle::tryOnce(TrialJob job) {
    const auto start = Clock::now();
    auto outcome = m_pool.submit(std::move(job), m_progress.cancel).get();
    if (outcome) {
        ++m_made;
        m_overhead.push_back(millisecondsSince(start) - outcome->milliseconds);
    }
    return outcome;
}

double Oracle::overheadMilliseconds() const {
    std::vector<double> all = m_overhead;
    if (all.empty()) return 0;
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
}

Result<void> Oracle::begin(const Candidate& start, const std::optional<FailureSignature>& wanted) {
    std::string seen;
    if (wanted && isComputed(wanted->kind)) nameAs(wanted->pass);
    m_check.derivatives = !wanted;
    // Not with repeats: a failure that is not deterministic would be found in another pass each time.
    const bool computed = m_check.level != TrialCheck::Level::Compiles;
    if (!wanted && computed && m_options.repeats <= 1) m_check.namesPass = true;
    // What does not fail when it is compiled may fail when it runs.
    std::vector<TrialCheck::Level> levels = {m_check.level};
    if (m_options.check == MinifyCheck::Crash) levels.push_back(TrialCheck::Level::Runs);
    for (const TrialCheck::Level level : levels) {
        m_check.level = level;
        for (int i = 0; i < std::max(1, m_options.repeats); ++i) {
            CT_TRY(TrialJob job, jobOf(start, usesValues()));
            const std::string key = keyOf(job);
            CT_TRY(TrialOutcome outcome, tryOnce(std::move(job)));
            // Bisecting the passes, too, may be what takes longer than the limit.
            if (!wanted && m_check.namesPass && outcome.failure && outcome.failure->kind == FailureKind::Hang) {
                m_check.namesPass = false;
                CT_TRY(job, jobOf(start, usesValues()));
                CT_TRY(outcome, tryOnce(std::move(job)));
            }
            if (outcome.failure && (!wanted || isSameFailure(*wanted, *outcome.failure))) {
                const bool runs = outcome.failure->kind == FailureKind::Run;
                if (runs && m_options.check != MinifyCheck::Crash)
                    return Error{ErrorCode::InvalidInput,
                                 "the graph does not run, so its results cannot be looked at: " + outcome.detail,
                                 {},
                                 {"minify that with --check crash"}};
                m_signature = wanted ? *wanted : *outcome.failure;
                m_detail = outcome.detail;
                m_near = nearOf(outcome, *start.module);
                m_check.derivatives = false;
                if (!wanted) nameAs(isComputed(m_signature.kind) ? m_signature.pass : std::string());
                return m_journal.add(key, true);
            }
            seen = outcome.failure ? "it fails in another way: " + outcome.failure->title() : outcome.detail;
        }
    }
    return Error{ErrorCode::NotFound,
                 wanted ? "the graph does not fail as " + wanted->title() : "the graph does not fail",
                 {},
                 {seen, "choose another check, other inputs, or more repeats if it fails now and then only"}};
}

void Oracle::nameAs(const std::string& pass) {
    m_check.pass = pass;
    m_check.namesPass = !pass.empty();
}

Result<std::vector<std::string>> Oracle::changingPasses(const Candidate& candidate) {
    if (m_options.check == MinifyCheck::Command) return std::vector<std::string>();
    CT_TRY(TrialJob job, jobOf(candidate, usesValues()));
    CT_TRY(const TrialOutcome outcome, tryOnce(std::move(job)));
    return outcome.changed;
}

void Oracle::count(bool known) {
    // PyTorch's minifier asks some questions twice.
    if (!known || m_options.request.parity) ++m_trials;
    if (m_listener.asked) m_listener.asked();
}

Result<bool> Oracle::verdict(const std::string& key, TrialJob job) {
    bool failed = false;
    for (int i = 0; i < std::max(1, m_options.repeats) && !failed; ++i) {
        CT_TRY(const TrialOutcome outcome, tryOnce(job));
        failed = isWanted(outcome);
    }
    CT_TRY_VOID(m_journal.add(key, failed));
    return failed;
}

Result<bool> Oracle::fails(const Candidate& candidate) {
    CT_TRY_VOID(mayGoOn());
    CT_TRY(TrialJob job, jobOf(candidate, usesValues()));
    const std::string key = keyOf(job);
    if (const auto before = m_answered.find(key); before != m_answered.end()) {
        count(true);
        return before->second;
    }
    const auto found = m_journal.find(key);
    bool failed = false;
    if (found) failed = *found;
    else {
        CT_TRY(failed, verdict(key, std::move(job)));
    }
    m_answered[key] = failed;
    count(false);
    return failed;
}

/// A question of several that are asked at once.
struct Oracle::Asked {
    size_t number = 0;
    Candidate candidate;
    std::string key;
    std::optional<bool> answer;
    std::future<Result<TrialOutcome>> pending;
    std::shared_ptr<CancelToken> cancel;
    Clock::time_point since;
};

Result<std::optional<Trials::Hit>> Oracle::firstFailing(size_t count, const Make& make) {
    // With repeats each question is several trials, and they follow one another.
    if (m_pool.size() < 2 || m_options.repeats > 1) return Trials::firstFailing(count, make);
    std::deque<Asked> asked;
    size_t next = 0;
    const auto stopAll = [&] {
        for (Asked& each : asked)
            if (each.cancel) each.cancel->cancel();
        for (Asked& each : asked)
            if (each.pending.valid()) each.pending.wait();
    };
    while (true) {
        while (next < count && asked.size() < static_cast<size_t>(m_pool.size())) {
            std::optional<Candidate> candidate = make(next);
            Asked each{next++, {}, {}, {}, {}, {}, Clock::now()};
            if (!candidate) continue;
            each.candidate = std::move(*candidate);
            CT_TRY(TrialJob job, jobOf(each.candidate, usesValues()));
            each.key = keyOf(job);
            if (const auto before = m_answered.find(each.key); before != m_answered.end()) each.answer = before->second;
            else if (const auto found = m_journal.find(each.key)) each.answer = found;
            else {
                each.cancel = std::make_shared<CancelToken>();
                each.pending = m_pool.submit(std::move(job), each.cancel);
            }
            asked.push_back(std::move(each));
        }
        if (asked.empty()) return std::optional<Hit>();
        if (const auto go = mayGoOn(); !go) {
            stopAll();
            return go.error();
        }
        Asked& first = asked.front();
        while (first.pending.valid() &&
               first.pending.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
            if (m_progress.cancelled()) first.cancel->cancel();
        if (first.pending.valid()) {
            auto outcome = first.pending.get();
            if (!outcome) {
                stopAll();
                return outcome.error();
            }
            ++m_made;
            first.answer = isWanted(*outcome);
            if (auto written = m_journal.add(first.key, *first.answer); !written) {
                stopAll();
                return written.error();
            }
        }
        this->count(m_answered.contains(first.key));
        m_answered[first.key] = *first.answer;
        if (*first.answer) {
            Hit hit{first.number, std::move(first.candidate)};
            stopAll();
            return std::optional<Hit>(std::move(hit));
        }
        asked.pop_front();
    }
}

Result<void> Oracle::accepted(const Candidate& candidate, const std::string& how) {
    if (!m_listener.accepted) return {};
    CT_TRY(const TrialJob job, jobOf(candidate, usesValues()));
    return m_listener.accepted(candidate, job, how);
}

Result<void> Oracle::computeValues(const std::vector<std::string>& names) {
    return usesValues() ? m_values.compute(names, m_progress) : Result<void>();
}

std::optional<Tensor> Oracle::valueOf(const Candidate& candidate, const std::string& input) {
    if (candidate.values)
        if (const auto found = candidate.values->find(input); found != candidate.values->end()) return found->second;
    const Node* node = candidate.module->graph().findByName(input);
    if (!node) return std::nullopt;
    Tensor value = m_values.of(*node);
    return value.defined() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace cutaway
