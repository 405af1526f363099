#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "cutaway/version.h"
#include "cutaway/words.h"
#include "engine/batch/batch_plan.h"

namespace cutaway {
namespace {

constexpr std::array<BatchVerdict, 6> kAllVerdicts = {BatchVerdict::Passes,  BatchVerdict::Differs, BatchVerdict::Fails,
                                                      BatchVerdict::Crashes, BatchVerdict::Hangs,   BatchVerdict::Lost};

constexpr std::string_view kStyle = R"(<style>
body { font: 15px/1.45 sans-serif; margin: 2em; color: #1c1c1c; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
th, td { text-align: left; vertical-align: top; padding: .25em .8em; border-bottom: 1px solid #d8d8d8 }
td.number { text-align: right; font-variant-numeric: tabular-nums }
td.passes { color: #1a6b2f } td.differs, td.fails, td.crashes, td.hangs { color: #a01818; font-weight: bold }
td.lost { color: #6b6b6b; font-style: italic }
td.text, code { font-family: monospace; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) {
  body { color: #e4e4e4; background: #1b1b1d } th, td { border-color: #3a3a3d } a { color: #8ab4f8 }
  td.passes { color: #7fd394 } td.differs, td.fails, td.crashes, td.hangs { color: #ff8a80 }
}
</style>
)";

std::string htmlText(std::string_view text) {
    std::string out;
    for (const char c : visibleText(text)) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    }
    return out;
}
std::string secondsText(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f s", seconds);
    return text;
}
std::string countText(size_t count, std::string_view one) {
    return std::to_string(count) + " " + std::string(one) + (count == 1 ? "" : "s");
}
std::string rowName(const BatchTask& task) { return task.model + ", " + task.request + ", " + task.check; }
std::string cell(const std::string& inner, std::string_view kind = {}) {
    return (kind.empty() ? "<td>" : "<td class=\"" + std::string(kind) + "\">") + inner + "</td>";
}
/// The folder stands beside the page; its name has no character that an address would not take.
std::string reproducerLink(const BatchResult& result) {
    if (result.reproducer.empty()) return {};
    return "<a href=\"" + htmlText(result.reproducer) + "/\">reproducer</a>";
}

}  // namespace

size_t BatchReport::count(BatchVerdict verdict) const {
    return static_cast<size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const BatchRow& row) { return row.result.verdict == verdict; }));
}

Result<BatchReport> batchReport(const BatchPlan& plan) {
    BatchReport report{plan.name, plan.folder, {}, {}, 0};
    std::map<std::string, size_t> groups;
    std::map<std::string_view, bool> counted;
    for (const BatchTask& task : plan.tasks) {
        BatchRow row{task, readBatchResult(plan.folder, task.id).value_or(BatchResult())};
        if (!counted[task.id]) report.seconds += row.result.seconds + row.result.minifySeconds;
        counted[task.id] = true;
        if (const std::string& signature = row.result.signature; !signature.empty()) {
            const auto [at, fresh] = groups.emplace(signature, report.groups.size());
            if (fresh) report.groups.push_back({signature, {}});
            report.groups[at->second].rows.push_back(report.rows.size());
        }
        report.rows.push_back(std::move(row));
    }
    std::stable_sort(report.groups.begin(), report.groups.end(),
                     [](const BatchGroup& a, const BatchGroup& b) { return a.rows.size() > b.rows.size(); });
    return report;
}

std::string batchHtml(const BatchReport& report) {
    const std::string name = htmlText(report.name);
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + name + "</title>\n" +
                      "<meta name=\"viewport\" content=\"width=device-width\">\n" + std::string(kStyle) +
                      "</head><body>\n<h1>" + name + "</h1>\n<p>" + countText(report.rows.size(), "task") + ": ";
    bool first = true;
    for (const BatchVerdict verdict : kAllVerdicts)
        if (const size_t count = report.count(verdict)) {
            out += (first ? "" : ", ") + std::to_string(count) + " " + std::string(nameOf(verdict));
            first = false;
        }
    out += ". One after the other they take " + secondsText(report.seconds) + ". Cutaway " + version() + ".</p>\n";
    if (!report.groups.empty()) {
        out += "<h2>Failures</h2>\n<table><tr><th>Tasks</th><th>Signature</th><th>Where</th><th></th></tr>\n";
        for (const BatchGroup& group : report.groups) {
            std::string where;
            for (const size_t row : group.rows)
                where += (where.empty() ? "" : "<br>") + htmlText(rowName(report.rows[row].task));
            // One of them stands for all; the table below has the others'.
            const BatchResult& shown = report.rows[group.rows.front()].result;
            out += "<tr>" + cell(std::to_string(group.rows.size()), "number") +
                   cell(htmlText(group.signature), "text") + cell(where) + cell(reproducerLink(shown)) + "</tr>\n";
        }
        out += "</table>\n";
    }
    out +=
        "<h2>Tasks</h2>\n<table><tr><th>Model</th><th>Request</th><th>Check</th><th>Verdict</th><th>Time</th>"
        "<th>What happened</th><th></th></tr>\n";
    for (const BatchRow& row : report.rows) {
        const BatchResult& result = row.result;
        std::string what = htmlText(result.message);
        if (!result.minified.empty())
            what += (what.empty() ? "" : "<br>") + htmlText(result.minified) + " (" +
                    secondsText(result.minifySeconds) + ")";
        out += "<tr>" + cell(htmlText(row.task.model)) + cell(htmlText(row.task.request)) + cell(row.task.check) +
               cell(std::string(nameOf(result.verdict)), nameOf(result.verdict)) +
               cell(result.verdict == BatchVerdict::Lost ? "" : secondsText(result.seconds), "number") +
               cell(what, "text") + cell(reproducerLink(result)) + "</tr>\n";
    }
    return out +
           "</table>\n<p>A reproducer is repeated by <code>cutaway-cli run-repro FOLDER</code>.</p>\n</body></html>\n";
}

}  // namespace cutaway
