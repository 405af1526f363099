#include "tests/support/pickle_builder.h"

#include <bit>
#include <cstdint>

#include "tests/support/zip_builder.h"

namespace cutaway::testing::pickle {
namespace {
std::string little(uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
    return out;
}
std::string numbers(const std::vector<int>& values) {
    std::vector<std::string> items;
    for (const int value : values) items.push_back(integer(value));
    return tuple(items);
}
}  // namespace

std::string text(const std::string& value) { return "X" + little(value.size(), 4) + value; }
std::string integer(int value) { return "J" + little(static_cast<uint32_t>(value), 4); }
std::string real(double value) {
    const std::string bits = little(std::bit_cast<uint64_t>(value), 8);
    return "G" + std::string(bits.rbegin(), bits.rend());
}
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string tuple(const std::vector<std::string>& items) {
    std::string out = "(";
    for (const std::string& item : items) out += item;
    return out + "t";
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
    std::string out = "}(";
    for (const auto& [key, value] : items) out += text(key) + value;
    return out + "u";
}
std::string call(const std::string& callable, const std::vector<std::string>& arguments) {
    return callable + tuple(arguments) + "R";
}
std::string storage(const std::string& cls, const std::string& key, int numel, const std::string& location) {
    return tuple({text("storage"), cls, text(key), text(location), integer(numel)}) + "Q";
}
std::string tensor(const std::string& storage, int offset, const std::vector<int>& sizes,
                   const std::vector<int>& strides, const std::vector<std::string>& extra) {
    std::vector<std::string> arguments = {storage,        integer(offset),
                                          numbers(sizes), numbers(strides),
                                          kFalse,         call(global("collections", "OrderedDict"), {})};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return call(global("torch._utils", "_rebuild_tensor_v2"), arguments);
}
std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }
std::string archive(const std::string& pickle, const std::vector<std::pair<std::string, std::string>>& storages,
                    const std::vector<std::pair<std::string, std::string>>& others) {
    std::vector<ZipFile> files = {{.name = "a/data.pkl", .content = pickle}};
    for (const auto& [key, bytes] : storages) files.push_back({.name = "a/data/" + key, .content = bytes});
    for (const auto& [name, content] : others) files.push_back({.name = "a/" + name, .content = content});
    return buildZip(files);
}

}  // namespace cutaway::testing::pickle
