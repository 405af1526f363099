#include "engine/formats/torch_save_writer.h"

#include <unordered_map>

#include "engine/formats/zip_writer.h"

namespace cutaway {
namespace {

/// Pickle, protocol 2.
class Pickle {
  public:
    Pickle() { m_bytes = "\x80\x02"; }
    void op(char code) { m_bytes.push_back(code); }
    void global(std::string_view module, std::string_view name) {
        op('c');
        m_bytes.append(module).append("\n").append(name).append("\n");
    }
    void text(std::string_view value) {
        op('X');
        little(static_cast<uint64_t>(value.size()), 4);
        m_bytes.append(value);
    }
    void integer(int64_t value) {
        op('\x8a');  // LONG1
        op(8);
        little(static_cast<uint64_t>(value), 8);
    }
    void integers(const Dims& values) {
        op('(');
        for (const int64_t value : values) integer(value);
        op('t');
    }
    std::string finish() {
        op('.');
        return std::move(m_bytes);
    }

  private:
    void little(uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) op(static_cast<char>(value >> (8 * i) & 0xFF));
    }
    std::string m_bytes;
};

/// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, False, OrderedDict())
void putTensor(Pickle& out, const Tensor& tensor, const std::string& key) {
    const DTypeInfo& dtype = info(tensor.dtype());
    out.global("torch._utils", "_rebuild_tensor_v2");
    out.op('(');
    out.op('(');
    out.text("storage");
    out.global("torch", dtype.storageClass);
    out.text(key);
    out.text("cpu");
    out.integer(static_cast<int64_t>(tensor.storage()->size()) / dtype.bytes);
    out.op('t');
    out.op('Q');
    out.integer(tensor.offset());
    out.integers(tensor.sizes());
    out.integers(tensor.strides());
    out.op('\x89');
    out.global("collections", "OrderedDict");
    out.op(')');
    out.op('R');
    out.op('t');
    out.op('R');
}

}  // namespace

Result<void> writeStateDict(const std::string& path, const NamedTensors& tensors) {
    Pickle out;
    std::unordered_map<const Storage*, std::string> keys;
    std::vector<std::shared_ptr<Storage>> storages;
    out.op('}');
    out.op('(');
    for (const auto& [name, tensor] : tensors) {
        if (info(tensor.dtype()).storageClass.empty())
            return unsupported("'" + name + "' is " + std::string(info(tensor.dtype()).torchName) +
                               ", which torch.save knows no storage class for");
        const auto [key, fresh] = keys.try_emplace(tensor.storage().get(), std::to_string(storages.size()));
        if (fresh) storages.push_back(tensor.storage());
        out.text(name);
        putTensor(out, tensor, key->second);
    }
    out.op('u');
    CT_TRY(ZipWriter zip, ZipWriter::create(path, "archive"));
    CT_TRY_VOID(zip.add("data.pkl", out.finish()));
    CT_TRY_VOID(zip.add("byteorder", "little"));
    for (size_t i = 0; i < storages.size(); ++i) {
        CT_TRY(const std::shared_ptr<Storage> bytes, Storage::forOneUse(storages[i]));
        CT_TRY_VOID(zip.add("data/" + std::to_string(i),
                            {reinterpret_cast<const char*>(std::as_const(*bytes).data()), bytes->size()}));
    }
    CT_TRY_VOID(zip.add("version", "3\n"));
    return zip.finish();
}

}  // namespace cutaway
