#include "cutaway/failure.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "engine/support/near_names.h"
#include "engine/support/trimmed.h"

namespace cutaway {
namespace {

constexpr std::array<std::pair<FailureKind, std::string_view>, 10> kKinds = {{
    {FailureKind::PassError, "pass-error"},
    {FailureKind::InvalidGraph, "invalid-graph"},
    {FailureKind::Crash, "crash"},
    {FailureKind::Hang, "hang"},
    {FailureKind::Memory, "memory"},
    {FailureKind::Build, "build-error"},
    {FailureKind::Run, "run-error"},
    {FailureKind::Numbers, "numbers"},
    {FailureKind::NonFinite, "nan"},
    {FailureKind::Command, "command"},
}};

std::string_view trimmed(std::string_view text) { return cutaway::trimmed(text, " \t\n"); }

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string_view nameOf(FailureKind kind) {
    return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& row) { return row.first == kind; })->second;
}

std::string FailureSignature::title() const {
    std::string out(nameOf(kind));
    if (!pass.empty()) out += ", in " + pass;
    if (!op.empty()) out += ", at " + op;
    return message.empty() ? out : out + ": " + message;
}

std::string FailureSignature::text() const {
    std::string out = "kind=" + std::string(nameOf(kind));
    if (!pass.empty()) out += "; pass=" + pass;
    if (!op.empty()) out += "; op=" + op;
    if (!message.empty()) out += "; message=" + message;
    return out;
}

Result<FailureSignature> parseSignature(std::string_view text) {
    FailureSignature out;
    bool known = false;
    while (!text.empty()) {
        const size_t equals = text.find('=');
        const std::string_view key = trimmed(text.substr(0, equals));
        if (equals == std::string_view::npos)
            return invalidInput("a part of a signature is KEY=VALUE, and '" + std::string(key) + "' is not");
        text.remove_prefix(equals + 1);
        // A message may hold semicolons, so it is the last part.
        const size_t end = key == "message" ? std::string_view::npos : text.find(';');
        const std::string_view value = trimmed(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (key == "pass") out.pass = value;
        else if (key == "op") out.op = value;
        else if (key == "message") out.message = value;
        else if (key == "kind") {
            const auto row =
                std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& r) { return r.second == value; });
            if (row == kKinds.end()) {
                std::string all;
                for (const auto& [kind, name] : kKinds) all += (all.empty() ? "" : ", ") + std::string(name);
                return invalidInput("no kind of failure is called '" + std::string(value) + "'; there are " + all);
            }
            out.kind = row->first;
            known = true;
        } else return invalidInput("a signature has kind, pass, op and message, and no '" + std::string(key) + "'");
    }
    if (!known) return invalidInput("the signature does not say which kind of failure it is: kind=crash");
    return out;
}

bool isSameFailure(const FailureSignature& wanted, const FailureSignature& found) {
    const auto fits = [](const std::string& want, const std::string& have) { return want.empty() || want == have; };
    return wanted.kind == found.kind && fits(wanted.pass, found.pass) && fits(wanted.op, found.op) &&
           fits(wanted.message, found.message);
}

std::string normalisedMessage(std::string_view message) {
    std::string out;
    for (size_t i = 0; i < message.size();) {
        const char c = message[i];
        if (c == '\n') break;  // what follows are notes
        if (c == '\'' || c == '"' || c == '`') {
            const size_t end = message.find(c, i + 1);
            // An apostrophe ends no name: "doesn't".
            if (end != std::string_view::npos && (i == 0 || !isWord(message[i - 1]))) {
                out += "'...'";
                i = end + 1;
                continue;
            }
        }
        if (c == '/' && (i == 0 || message[i - 1] == ' ')) {
            out += "PATH";
            while (i < message.size() && message[i] != ' ' && message[i] != ':' && message[i] != ',') ++i;
            continue;
        }
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            out += 'N';
            while (i < message.size() && (std::isxdigit(static_cast<unsigned char>(message[i])) != 0 ||
                                          message[i] == 'x' || message[i] == '.'))
                ++i;
            if (!out.empty() && message[i - 1] == '.') out += '.';
            continue;
        }
        out += c;
        ++i;
    }
    return std::string(trimmed(out));
}

}  // namespace cutaway
