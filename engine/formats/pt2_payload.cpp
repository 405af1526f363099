#include "engine/formats/pt2_payload.h"

#include "engine/formats/checked_tensor.h"
#include "engine/formats/torch_save.h"

namespace cutaway {
namespace {

/// Bytes up to which zeros may stand for a payload that the file does not hold.
constexpr int64_t kMaxZeros = int64_t{1} << 30;

class PayloadReader {
  public:
    PayloadReader(const ZipArchive& archive, std::string folder, std::vector<std::string>& remarks)
        : m_archive(archive), m_folder(std::move(folder)), m_remarks(remarks) {}

    Result<void> read(const Json& config, std::map<std::string, Tensor>& tensors, const std::string& where) {
        CT_TRY(const Json entries, config.objectAt("config", where));
        for (const auto& [nameView, json] : entries.members()) {
            const std::string name(nameView);
            const std::string at = where + ": '" + name + "'";
            const Json entry(json);
            CT_TRY(const std::string_view path, entry.textAt("path_name", at));
            const auto pickled = entry.find("use_pickle");
            if (pickled && pickled->flag().value_or(false)) {
                CT_TRY_VOID(readPickled(name, std::string(path), tensors, at));
                continue;
            }
            const auto meta = entry.find("tensor_meta");
            if (!meta) {
                m_remarks.push_back("'" + name + "' has no tensor description and is left out");
                continue;
            }
            CT_TRY(const TensorType type, m_types.tensor(*meta, at));
            if (!allInts(type.sizes) || !allInts(type.strides) || !type.offset.isInt())
                return invalidInput("sizes, strides and offset of a payload must be numbers", at);
            CT_TRY_VOID(readRaw(name, std::string(path), type, tensors, at));
        }
        return {};
    }

  private:
    Result<void> readRaw(const std::string& name, const std::string& path, const TensorType& type,
                         std::map<std::string, Tensor>& tensors, const std::string& at) {
        if (type.layout != Layout::Strided) {
            m_remarks.push_back("'" + name + "' has layout " + std::string(cutaway::name(type.layout)) +
                                ", which is not read");
            return {};
        }
        const Dims sizes = toInts(type.sizes), strides = toInts(type.strides);
        const ZipEntry* entry = m_archive.find(m_folder + path);
        if (entry == nullptr) return {};  // whoever needs it says so
        auto& bytes = m_storages[path];
        if (!bytes) {
            CT_TRY(bytes, m_archive.readLater(*entry));
        }
        CT_TRY(const int64_t elements, reach(sizes, strides, type.offset.value(), "invalid payload", at));
        if (bytes->size() == 0 && elements > 0) {  // PAY-2
            if (elements > kMaxZeros / byteSize(type.dtype))
                return Error{ErrorCode::Limit, "the payload is empty, but its sizes need more than 1 GiB", at, {}};
            bytes = Storage::allocate(static_cast<size_t>(elements * byteSize(type.dtype)));
            m_remarks.push_back("the data of '" + name + "' is empty in the file (" + path +
                                "); it is taken to be zeros");
        }
        CT_TRY(Tensor tensor,
               makeTensor(bytes, type.dtype, sizes, strides, type.offset.value(), "invalid payload", at));
        tensors.insert_or_assign(name, std::move(tensor));
        return {};
    }
    Result<void> readPickled(const std::string& name, const std::string& path, std::map<std::string, Tensor>& tensors,
                             const std::string& at) {
        const ZipEntry* entry = m_archive.find(m_folder + path);
        if (entry == nullptr) return {};
        CT_TRY(ByteSource source, m_archive.source(*entry));
        const auto value = readTorchSave(std::move(source), at, SavedObjects::AsFields);
        const bool wrapper = value && value->dict() && !value->dict()->ofClass.empty();
        if (value && value->tensor()) tensors.insert_or_assign(name, *value->tensor());
        else if (wrapper)  // a graph reads its tensors by their names (inner_tensors.h)
            for (auto& [inner, tensor] : tensorsOf(*value)) tensors.insert_or_assign(name + "." + inner, tensor);
        else
            m_remarks.push_back("'" + name + "' is not a plain tensor and is kept opaque" +
                                (value ? std::string() : ": " + value.error().message));
        return {};
    }

    const ZipArchive& m_archive;
    const std::string m_folder;
    std::vector<std::string>& m_remarks;
    Pt2Types m_types;
    std::map<std::string, std::shared_ptr<Storage>> m_storages;
};

}  // namespace

Result<void> readPt2Payloads(const ZipArchive& archive, const std::string& folder, const std::string& model,
                             const std::string& configSuffix, std::map<std::string, Tensor>& tensors,
                             std::vector<std::string>& remarks) {
    const std::string config = folder + model + "_" + configSuffix;
    if (archive.find(config) == nullptr) return readSavedPayloads(archive, folder + model + ".pt", tensors, remarks);
    const std::string where = archive.where() + ": " + config;
    CT_TRY(const std::string text, archive.readText(config));
    CT_TRY(const auto document, parseJson(text, where));
    return PayloadReader(archive, folder, remarks).read(document->root, tensors, where);
}

Result<void> readSavedPayloads(const ZipArchive& archive, const std::string& entry,
                               std::map<std::string, Tensor>& tensors, std::vector<std::string>& remarks) {
    const ZipEntry* found = archive.find(entry);
    if (found == nullptr || found->size == 0) return {};
    CT_TRY(ByteSource source, archive.source(*found));
    CT_TRY(const SavedValue value, readTorchSave(std::move(source), archive.where() + ": " + entry));
    const SavedDict* dict = value.dict();
    if (dict == nullptr) return invalidInput("a dict of tensors by name is expected", archive.where() + ": " + entry);
    for (const auto& [name, item] : dict->items) {
        if (const Tensor* tensor = item.tensor()) tensors.insert_or_assign(name, *tensor);
        else remarks.push_back("'" + name + "' in " + entry + " is not a plain tensor and is left out");
    }
    return {};
}

}  // namespace cutaway
