#include "engine/formats/safetensors.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "engine/formats/byte_cursor.h"
#include "engine/formats/checked_tensor.h"
#include "engine/formats/json.h"

namespace cutaway {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;

struct Entry {
    std::string name;
    DType dtype = DType::F32;
    Dims sizes;
    uint64_t begin = 0, end = 0;
};

/// The header counts 4-bit floats one by one; our dtype holds two in a byte, along the last dim.
bool packPairs(Entry& entry) {
    if (entry.dtype != DType::F4E2M1FNX2) return true;
    if (entry.sizes.empty() || entry.sizes.back() % 2 != 0) return false;
    entry.sizes.back() /= 2;
    return true;
}

Result<Entry> parseEntry(std::string_view name, const Json& value, const std::string& where) {
    const std::string at = where + ": " + std::string(name);
    auto malformed = [&](std::string what) {
        return invalidInput("InvalidHeaderDeserialization: " + std::move(what), at);
    };
    Entry entry;
    entry.name = std::string(name);
    if (!value.isObject()) return malformed("the entry is not an object");
    const auto dtypeField = value.find("dtype"), shapeField = value.find("shape"),
               offsetsField = value.find("data_offsets");
    if (!dtypeField || !dtypeField->text()) return malformed("'dtype' is missing or not a string");
    const auto dtype = dtypeFromSafetensors(*dtypeField->text());
    if (!dtype) return malformed("unknown dtype '" + std::string(*dtypeField->text()) + "'");
    entry.dtype = *dtype;
    if (!shapeField || !shapeField->isArray()) return malformed("'shape' is missing or not a list");
    for (const Json size : shapeField->items()) {
        if (!size.integer() || *size.integer() < 0) return malformed("'shape' holds something that is not a size");
        entry.sizes.push_back(*size.integer());
    }
    if (!offsetsField || offsetsField->items().size() != 2) return malformed("'data_offsets' is not a pair");
    uint64_t* const slots[] = {&entry.begin, &entry.end};
    for (size_t i = 0; const Json offset : offsetsField->items()) {
        if (!offset.integer() || *offset.integer() < 0)
            return malformed("'data_offsets' holds something that is not an offset");
        *slots[i++] = static_cast<uint64_t>(*offset.integer());
    }
    return entry;
}

Result<std::vector<Entry>> parseHeader(const Json& root, SafeTensors& file, const std::string& where) {
    if (!root.isObject()) return invalidInput("InvalidHeaderDeserialization: the header is not an object", where);
    std::vector<Entry> entries;
    std::set<std::string_view> seen;
    for (const auto& [key, value] : root.members()) {
        if (!seen.insert(key).second)
            return invalidInput("InvalidHeaderDeserialization: the name appears twice",
                                where + ": " + std::string(key));
        if (key == "__metadata__") {
            for (const auto& [name, text] : Json(value).members()) {
                if (!Json(text).text())
                    return invalidInput("InvalidHeaderDeserialization: metadata is not a string",
                                        where + ": " + std::string(name));
                file.metadata.emplace_back(name, *Json(text).text());
            }
            continue;
        }
        CT_TRY(Entry entry, parseEntry(key, value, where));
        entries.push_back(std::move(entry));
    }
    return entries;
}

/// ST-2: the ranges follow each other from 0 to the end of the data.
Result<void> checkRanges(const std::vector<Entry>& entries, uint64_t dataSize, const std::string& where) {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries) order.push_back(&entry);
    std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
        return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    uint64_t next = 0;
    for (const Entry* entry : order) {
        if (entry->begin != next || entry->end < entry->begin)
            return invalidInput("InvalidOffset: data_offsets [" + std::to_string(entry->begin) + ", " +
                                    std::to_string(entry->end) + "], expected to begin at " + std::to_string(next),
                                where + ": " + entry->name);
        next = entry->end;
    }
    if (next != dataSize)
        return invalidInput("MetadataIncompleteBuffer: the header describes " + std::to_string(next) +
                                " bytes of data, the file has " + std::to_string(dataSize),
                            where);
    return {};
}

/// Read now if it is at hand, else when it is first used.
Result<std::shared_ptr<Storage>> entryBytes(const ByteSource& source, uint64_t start, uint64_t size,
                                            const std::string& at) {
    if (source.atHand()) return source.read(start, size);
    return Storage::deferred(size, [source, start, at](std::span<std::byte> into) -> Result<void> {
        auto read = source.readInto(start, into);
        if (!read) read.error().where = at;
        return read;
    });
}

Result<Tensor> makeEntryTensor(Entry entry, const ByteSource& source, uint64_t dataStart, const std::string& where) {
    const std::string at = where + ": " + entry.name;
    if (!packPairs(entry)) return invalidInput("TensorInvalidInfo: 4-bit elements do not fill whole bytes", at);
    int64_t count = 1, size = 0;
    for (const int64_t dim : entry.sizes)
        if (__builtin_mul_overflow(count, dim, &count))
            return invalidInput("ValidationOverflow: the shape overflows 64 bits", at);
    if (__builtin_mul_overflow(count, byteSize(entry.dtype), &size))
        return invalidInput("ValidationOverflow: the shape overflows 64 bits", at);
    if (static_cast<uint64_t>(size) != entry.end - entry.begin)
        return invalidInput("TensorInvalidInfo: " + std::to_string(entry.end - entry.begin) +
                                " bytes given, dtype and shape need " + std::to_string(size),
                            at);
    CT_TRY_VOID(reach(entry.sizes, Dims(entry.sizes.size(), 0), 0, "ValidationOverflow", at));
    CT_TRY(std::shared_ptr<Storage> data, entryBytes(source, dataStart + entry.begin, entry.end - entry.begin, at));
    Dims strides = contiguousStrides(entry.sizes);
    return makeTensor(data, entry.dtype, std::move(entry.sizes), std::move(strides), 0, "TensorInvalidInfo", at);
}

}  // namespace

Result<SafeTensors> parseSafeTensors(ByteSource source, const std::string& where) {
    CT_TRY(const std::shared_ptr<Storage> start, source.readStart(8));
    const auto headerSize = ByteCursor({start->data(), start->size()}).read<uint64_t>();
    if (!headerSize)
        return invalidInput("HeaderTooSmall: " + std::to_string(source.size()) + " bytes, at least 8 are needed",
                            where);
    if (*headerSize > kMaxHeader)
        return invalidInput(
            "HeaderTooLarge: a header of " + std::to_string(*headerSize) + " bytes, the limit is 100000000", where);
    if (*headerSize > source.size() - 8)
        return invalidInput("InvalidHeaderLength: a header of " + std::to_string(*headerSize) +
                                " bytes does not fit a file of " + std::to_string(source.size()) + " bytes",
                            where);
    CT_TRY(const std::shared_ptr<Storage> headerBytes, source.read(8, *headerSize));
    const std::string_view header(reinterpret_cast<const char*>(headerBytes->data()), headerBytes->size());
    if (!simdjson::validate_utf8(header.data(), header.size()))
        return invalidInput("InvalidHeader: the header is not UTF-8", where);
    if (!header.starts_with('{')) return invalidInput("InvalidHeaderStart: the header does not begin with '{'", where);
    auto document = parseJson(header, where);
    if (!document) {
        Error error = std::move(document).error();
        error.message = "InvalidHeaderDeserialization: " + error.message;
        return error;
    }
    SafeTensors file;
    CT_TRY(std::vector<Entry> entries, parseHeader((*document)->root, file, where));
    const uint64_t dataStart = 8 + *headerSize;
    CT_TRY_VOID(checkRanges(entries, source.size() - dataStart, where));
    for (Entry& entry : entries) {
        std::string name = entry.name;
        CT_TRY(Tensor tensor, makeEntryTensor(std::move(entry), source, dataStart, where));
        file.tensors.emplace_back(std::move(name), std::move(tensor));
    }
    return file;
}

Result<SafeTensors> readSafeTensors(const std::string& path) {
    CT_TRY(ByteSource source, ByteSource::open(path));
    return parseSafeTensors(std::move(source), path);
}

Result<std::string> formatSafeTensors(const SafeTensors& file) {
    std::vector<size_t> order(file.tensors.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return byteSize(file.tensors[a].second.dtype()) > byteSize(file.tensors[b].second.dtype());
    });
    std::vector<std::pair<uint64_t, uint64_t>> ranges(file.tensors.size());
    uint64_t next = 0;
    for (const size_t i : order) {
        ranges[i] = {next, next + file.tensors[i].second.bytes()};
        next = ranges[i].second;
    }
    std::string header = "{";
    if (!file.metadata.empty()) {
        header += "\"__metadata__\":{";
        for (const auto& [key, value] : file.metadata)
            header += (header.back() == '{' ? "" : ",") + jsonString(key) + ":" + jsonString(value);
        header += "}";
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < file.tensors.size(); ++i) {
        const auto& [name, tensor] = file.tensors[i];
        if (!seen.insert(name).second) return invalidInput("two tensors of one name", name);
        if (info(tensor.dtype()).safetensors.empty())
            return unsupported("safetensors has no name for dtype " + std::string(info(tensor.dtype()).torchName), name,
                               {"convert the tensor before writing it"});
        Dims sizes = tensor.sizes();
        if (tensor.dtype() == DType::F4E2M1FNX2) {
            if (sizes.empty()) return unsupported("safetensors cannot hold a 4-bit scalar pair", name);
            sizes.back() *= 2;
        }
        header += (header == "{" ? "" : ",") + jsonString(name) + ":{\"dtype\":\"" +
                  std::string(info(tensor.dtype()).safetensors) + "\",\"shape\":[";
        for (size_t d = 0; d < sizes.size(); ++d) header += (d ? "," : "") + std::to_string(sizes[d]);
        header +=
            "],\"data_offsets\":[" + std::to_string(ranges[i].first) + "," + std::to_string(ranges[i].second) + "]}";
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');

    std::string out(8, '\0');
    for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    out += header;
    out.reserve(out.size() + next);
    for (const size_t i : order) {
        const Tensor packed = file.tensors[i].second.contiguous();
        if (packed.bytes() > 0) out.append(static_cast<const char*>(packed.data()), packed.bytes());
    }
    return out;
}

Result<void> writeSafeTensors(const std::string& path, const SafeTensors& file) {
    CT_TRY(const std::string bytes, formatSafeTensors(file));
    const std::string beside = path + ".part";
    std::ofstream stream(beside, std::ios::binary | std::ios::trunc);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (!stream || std::rename(beside.c_str(), path.c_str()) != 0) {
        const std::string reason = std::strerror(errno);
        std::remove(beside.c_str());
        return Error{ErrorCode::ToolFailed, "cannot write: " + reason, path, {}};
    }
    return {};
}

}  // namespace cutaway
