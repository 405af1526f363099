#include "tests/fuzz/formats.h"

#include <cstdio>
#include <cstdlib>

#include "engine/formats/folder.h"
#include "engine/formats/pt2.h"
#include "engine/formats/repro.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/structured_trace.h"
#include "engine/formats/text_file.h"
#include "engine/ir/verify.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/zip_builder.h"

namespace cutaway::fuzz {
namespace {

using Bytes = std::span<const uint8_t>;

/// A copy of exactly that size, so that a read past its end is seen.
std::shared_ptr<Storage> storageOf(Bytes bytes) {
    auto storage = Storage::allocateUninitialized(bytes.size());
    if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
    return storage;
}
std::string_view textOf(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

[[noreturn]] void broken(const char* what, const std::string& detail) {
    std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
    std::abort();
}

/// What was read must be a graph that holds together, prints, and reads back to the same text.
void check(const Module& module) {
    const std::string first = printText(module).text;
    const auto again = parseText(first, {});
    if (!again) broken("what was printed does not parse", again.error().text() + "\n" + first);
    const std::string second = printText(**again).text;
    if (second != first)
        broken("what was printed reads back as something else", first + "\n--- against ---\n" + second);
    PrintOptions runnable;
    runnable.runnable = true;
    printText(module, runnable);
}
void check(const Result<OpenedFile>& file) {
    if (!file) return;
    for (const OpenedGraph& graph : file->graphs) {
        check(*graph.module);
        for (const auto& [name, tensor] : graph.module->tensors)
            if (tensor.defined() && tensor.numel() > 0) (void)tensor.item(tensor.numel() - 1);
    }
    for (const auto& [name, tensor] : file->tensors)
        if (tensor.defined() && tensor.numel() > 0) (void)tensor.item(tensor.numel() - 1);
}

void archive(Bytes bytes) {
    auto storage = storageOf(bytes);
    const auto zip = ZipArchive::open(storage, "fuzz");
    if (zip) check(openBytes(storage, "fuzz"));
}
void program(Bytes bytes) {
    if (auto module = readPt2Program(textOf(bytes), "fuzz")) check(**module);
}
/// The pickle inside an archive with one storage of 64 bytes.
void pickle(Bytes bytes) {
    const std::string file = testing::buildZip({{.name = "a/data.pkl", .content = std::string(textOf(bytes))},
                                                {.name = "a/byteorder", .content = "little"},
                                                {.name = "a/data/0", .content = std::string(64, '\1')},
                                                {.name = "a/version", .content = "3\n"}});
    check(openBytes(storageOf({reinterpret_cast<const uint8_t*>(file.data()), file.size()}), "fuzz"));
}
void safetensors(Bytes bytes) {
    auto file = parseSafeTensors(storageOf(bytes), "fuzz");
    if (!file) return;
    for (const auto& [name, tensor] : file->tensors)
        if (tensor.numel() > 0) (void)tensor.item(tensor.numel() - 1);
    (void)formatSafeTensors(*file);
}
void text(Bytes bytes) {
    if (auto module = parseText(textOf(bytes), {})) check(**module);
}
void log(Bytes bytes) { check(openTextFile(textOf(bytes), "fuzz", {})); }
void repro(Bytes bytes) {
    check(readRepro(textOf(bytes), "fuzz", [](const std::string&) { return std::shared_ptr<Storage>(); }));
}
void trace(Bytes bytes) { check(readStructuredTrace(textOf(bytes), "fuzz", {})); }

/// Files one after another, each after a line "@@ NAME".
void folder(Bytes bytes) {
    FileTree tree;
    std::map<std::string, std::string_view> contents;
    std::string_view rest = textOf(bytes);
    while (rest.starts_with("@@ ")) {
        const size_t line = std::min(rest.find('\n'), rest.size());
        const std::string name(rest.substr(3, line - 3));
        rest.remove_prefix(std::min(line + 1, rest.size()));
        const size_t next = std::min(rest.find("\n@@ "), rest.size());
        contents.emplace(name, rest.substr(0, next));
        rest.remove_prefix(std::min(next + 1, rest.size()));
    }
    for (const auto& [name, content] : contents) tree.files.push_back(name);
    tree.read = [&](const std::string& name) -> Result<ByteSource> {
        const std::string_view content = contents.at(name);
        return ByteSource(storageOf({reinterpret_cast<const uint8_t*>(content.data()), content.size()}));
    };
    check(readFolder(tree, "fuzz", {}));
}

constexpr Format kFormats[] = {
    {"archive", archive}, {"program", program}, {"pickle", pickle}, {"safetensors", safetensors},
    {"text", text},       {"log", log},         {"repro", repro},   {"trace", trace},
    {"folder", folder}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace cutaway::fuzz
