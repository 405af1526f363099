#include "plugins/host/serve.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/host/library_calls.h"

namespace {

using Texts = std::vector<std::string>;

constexpr size_t kMostWhyBytes = 4096;
constexpr const char* kTooMuch = "what it returns takes more memory than there is";

bool readAll(int file, void* into, size_t size) {
    auto* at = static_cast<char*>(into);
    while (size > 0) {
        const ssize_t got = ::read(file, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

bool writeAll(int file, const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
        const ssize_t put = ::write(file, bytes.data() + at, bytes.size() - at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += static_cast<size_t>(put);
    }
    return true;
}

/// What Cutaway sends is sound, so that nothing is checked here but that it is all there.
bool readMessage(int file, Texts& texts) {
    uint64_t bytes = 0, count = 0;
    if (!readAll(file, &bytes, sizeof bytes) || !readAll(file, &count, sizeof count)) return false;
    texts.assign(count, {});
    for (std::string& text : texts) {
        uint64_t size = 0;
        if (!readAll(file, &size, sizeof size)) return false;
        text.resize(size);
        if (!readAll(file, text.data(), size)) return false;
    }
    return true;
}

bool writeMessage(int file, const Texts& texts) {
    std::string bytes;
    const auto number = [&](uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
    uint64_t size = sizeof size;
    for (const std::string& text : texts) size += sizeof size + text.size();
    bytes.reserve(sizeof size + size);
    number(size);
    number(texts.size());
    for (const std::string& text : texts) {
        number(text.size());
        bytes += text;
    }
    return writeAll(file, bytes);
}

std::string text(const char* given) { return given != nullptr ? given : ""; }

/// Whether a struct of the plugin, which may be older than this program, has the member.
template <class Struct, class Member>
bool has(const Struct& given, Member Struct::*member) {
    const auto* base = reinterpret_cast<const char*>(&given);
    const auto* end = reinterpret_cast<const char*>(&(given.*member)) + sizeof(Member);
    return static_cast<size_t>(end - base) <= given.size;
}
template <class Struct, class Member>
Member valueOf(const Struct& given, Member Struct::*member) {
    return has(given, member) ? given.*member : Member{};
}
template <class Struct>
std::string textOf(const Struct& given, const char* Struct::*member) {
    return text(valueOf(given, member));
}

/// A call under way.
struct Call {
    ct_host host;  // first: the functions below get its address
    Texts settings, said;
    std::string why;
    bool failed = false, outOfMemory = false;

    /// Nothing may be thrown through the plugin.
    void say(std::initializer_list<std::string_view> texts) noexcept try {
        for (const std::string_view each : texts) said.emplace_back(each);
    } catch (const std::bad_alloc&) {
        outOfMemory = true;
    }
};
Call& callOf(const ct_host* host) { return *reinterpret_cast<Call*>(const_cast<ct_host*>(host)); }
std::string_view viewOf(const char* given) { return given != nullptr ? std::string_view(given) : std::string_view(); }

void emitText(const ct_host* host, const char* name, ct_text given) {
    callOf(host).say({"emit", viewOf(name), given.data != nullptr ? std::string_view(given.data, given.size) : ""});
}
void failCall(const ct_host* host, const char* why) {
    Call& call = callOf(host);
    call.failed = true;
    call.why.assign(viewOf(why).substr(0, kMostWhyBytes));
}
const char* settingOf(const ct_host* host, const char* key) {
    const std::string wanted = text(key) + "=";
    for (const std::string& setting : callOf(host).settings)
        if (setting.compare(0, wanted.size(), wanted) == 0) return setting.c_str() + wanted.size();
    return nullptr;
}
void nameRewrite(const ct_host* host, const char* node, const char* rule, const char* why) {
    callOf(host).say({"rewrite", viewOf(node), viewOf(rule), viewOf(why)});
}
void colorNode(const ct_host* host, const char* node, double number, const char* kind, const char* why) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", number);
    callOf(host).say({"color", viewOf(node), digits, viewOf(kind), viewOf(why)});
}
void saySentence(const ct_host* host, const char* sentence) { callOf(host).say({"say", viewOf(sentence)}); }

template <class Item, class Each>
void forEach(const Item* const* items, Each&& each) {
    for (; items != nullptr && *items != nullptr; ++items) each(**items);
}
template <class Item>
const Item* itemAt(const Item* const* items, size_t index) {
    for (; items != nullptr && *items != nullptr; ++items, --index)
        if (index == 0) return *items;
    return nullptr;
}

Texts describe(const ct_plugin& plugin) {
    Texts out = {"ok",
                 "",
                 textOf(plugin, &ct_plugin::name),
                 textOf(plugin, &ct_plugin::version),
                 textOf(plugin, &ct_plugin::summary),
                 textOf(plugin, &ct_plugin::rules),
                 std::to_string(valueOf(plugin, &ct_plugin::processes)),
                 textOf(plugin, &ct_plugin::operators)};
    forEach(valueOf(plugin, &ct_plugin::passes), [&](const ct_pass& pass) {
        out.insert(out.end(),
                   {"pass", textOf(pass, &ct_pass::name), textOf(pass, &ct_pass::summary),
                    textOf(pass, &ct_pass::place), textOf(pass, &ct_pass::after), textOf(pass, &ct_pass::settings)});
    });
    const auto add = [&](const char* kind, const auto& item, const std::string& more) {
        out.insert(out.end(), {kind, text(item.name), text(item.summary), more, "", ""});
    };
    forEach(valueOf(plugin, &ct_plugin::importers),
            [&](const ct_importer& importer) { add("importer", importer, textOf(importer, &ct_importer::patterns)); });
    forEach(valueOf(plugin, &ct_plugin::oracles), [&](const ct_oracle& oracle) { add("oracle", oracle, ""); });
    forEach(valueOf(plugin, &ct_plugin::colorings),
            [&](const ct_coloring& coloring) { add("coloring", coloring, textOf(coloring, &ct_coloring::unit)); });
    forEach(valueOf(plugin, &ct_plugin::judges), [&](const ct_judge& judge) { add("judge", judge, ""); });
    forEach(valueOf(plugin, &ct_plugin::libraries),
            [&](const ct_library& library) { add("library", library, textOf(library, &ct_library::ops)); });
    return out;
}

/// Of "f32 2 4 8": dtype, rank, sizes.
struct TensorText {
    std::string dtype;
    std::vector<int64_t> sizes;
    ct_tensor tensor;

    TensorText(const std::string& type, const std::string& bytes) {
        const size_t blank = type.find(' ');
        dtype = type.substr(0, blank);
        const char* at = type.c_str() + std::min(blank, type.size());
        char* next = nullptr;
        for (long long left = std::strtoll(at, &next, 10); left > 0; --left) {
            at = next;
            sizes.push_back(std::strtoll(at, &next, 10));
        }
        tensor = {sizeof tensor, dtype.c_str(), sizes.size(), sizes.data(), {bytes.data(), bytes.size()},
                  nullptr,       nullptr};
    }
    TensorText(const TensorText&) = delete;
};

/// Whether a library takes a call, or what it computes, in the results' memory, and how long that took.
int askLibrary(const ct_library* library, bool computes, const Texts& request, Call& call, bool& known) {
    const auto function = library == nullptr ? nullptr
                          : computes         ? valueOf(*library, &ct_library::run)
                                             : valueOf(*library, &ct_library::takes);
    known = function != nullptr;
    if (!known) return CT_FAILED;
    const LibraryCall work(request);
    if (!work.problem.empty()) {
        failCall(&call.host, work.problem.c_str());
        return CT_FAILED;
    }
    const auto start = std::chrono::steady_clock::now();
    const int ended = function(&call.host, work.call());
    const auto took = std::chrono::steady_clock::now() - start;
    if (computes)
        call.say({"took", std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count())});
    return ended;
}

Texts answer(const ct_plugin& plugin, const Texts& request) {
    if (request.size() < 2) return {"failed", "the request is incomplete"};
    const std::string& kind = request[0];
    if (kind == "describe") return describe(plugin);
    if (request.size() < 4) return {"failed", "the request is incomplete"};
    const size_t index = std::stoul(request[1]);
    Call call{{sizeof(ct_host), emitText, failCall, settingOf, nameRewrite, colorNode, saySentence}, {}, {}, {}};
    const bool computes = kind == "compute", asksLibrary = computes || kind == "takes";
    if (!asksLibrary) call.settings.assign(request.begin() + 4, request.end());
    const ct_text work{request[3].data(), request[3].size()};
    int ended = CT_FAILED;
    bool known = false;
    const auto run = [&](const auto* item, auto&& with) {
        known = item != nullptr && item->run != nullptr;
        if (known) ended = with(*item);
    };
    if (kind == "pass")
        run(itemAt(valueOf(plugin, &ct_plugin::passes), index), [&](auto& item) { return item.run(&call.host, work); });
    if (kind == "oracle")
        run(itemAt(valueOf(plugin, &ct_plugin::oracles), index),
            [&](auto& item) { return item.run(&call.host, work); });
    if (kind == "coloring")
        run(itemAt(valueOf(plugin, &ct_plugin::colorings), index),
            [&](auto& item) { return item.run(&call.host, work); });
    if (kind == "importer")
        run(itemAt(valueOf(plugin, &ct_plugin::importers), index),
            [&](auto& item) { return item.run(&call.host, request[2].c_str(), work); });
    if (kind == "judge" && request.size() > 4) {
        const size_t end = request[2].find('|');
        const TensorText actual(request[2].substr(0, end), request[3]);
        const TensorText expected(end == std::string::npos ? "" : request[2].substr(end + 1), request[4]);
        run(itemAt(valueOf(plugin, &ct_plugin::judges), index),
            [&](auto& item) { return item.run(&call.host, &actual.tensor, &expected.tensor); });
    }
    if (asksLibrary)
        ended = askLibrary(itemAt(valueOf(plugin, &ct_plugin::libraries), index), computes, request, call, known);
    if (!known) return {"failed", "it has no such function"};
    if (call.outOfMemory) return {"failed", kTooMuch};
    if (call.failed || (ended != CT_OK && ended != CT_YES))
        return {"failed",
                call.why.empty() ? "it returned " + std::to_string(ended) + " and did not say why" : call.why};
    call.said.insert(call.said.begin(), {ended == CT_YES ? "yes" : "ok", ""});
    return std::move(call.said);
}

}  // namespace

int cutaway_serve_plugin(const ct_plugin* plugin, int input, int output) {
    std::string problem;
    if (plugin == nullptr) problem = "cutaway_plugin() returned no plugin";
    else if (plugin->size < offsetof(ct_plugin, version)) problem = "the plugin's struct does not say its size";
    else if (plugin->abi != CT_ABI)
        problem = "it is built for version " + std::to_string(plugin->abi) +
                  " of cutaway_plugin.h, and this is version " + std::to_string(CT_ABI);
    for (Texts request; readMessage(input, request);) {
        try {
            if (!writeMessage(output, problem.empty() ? answer(*plugin, request) : Texts{"failed", problem})) return 1;
        } catch (const std::bad_alloc&) {
            if (!writeMessage(output, {"failed", kTooMuch})) return 1;
        }
    }
    return 0;
}
