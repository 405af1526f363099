#include "engine/formats/torch_save.h"

#include "engine/formats/checked_tensor.h"
#include "engine/formats/pickle.h"

namespace cutaway {
namespace {

enum class Callable : uint8_t {
    RebuildTensor,
    RebuildTensorV3,
    RebuildParameter,
    RebuildMeta,
    RebuildFromType,
    Unsupported,
    Device,
    Size,
    Layout,
    Dict,
    DefaultDict,
    List,
    Tuple,
    Number,
    Complex,
    Bytes,
    Encode,
    Constant,  // never called: classes, factories, constants
};
struct AllowedName {
    std::string_view name;
    Callable callable;
};
/// The whole list; dtypes and storage classes of torch are recognised by their names.
constexpr AllowedName kAllowed[] = {
    {"torch._utils _rebuild_tensor_v2", Callable::RebuildTensor},
    {"torch._utils _rebuild_tensor_v3", Callable::RebuildTensorV3},
    {"torch._utils _rebuild_parameter", Callable::RebuildParameter},
    {"torch._utils _rebuild_parameter_with_state", Callable::RebuildParameter},
    {"torch._utils _rebuild_meta_tensor_no_storage", Callable::RebuildMeta},
    {"torch._utils _rebuild_sparse_tensor", Callable::Unsupported},
    {"torch._utils _rebuild_qtensor", Callable::Unsupported},
    {"torch._utils _rebuild_device_tensor_from_numpy", Callable::Unsupported},
    {"torch._tensor _rebuild_from_type_v2", Callable::RebuildFromType},
    {"torch._tensor Tensor", Callable::Constant},
    {"torch Tensor", Callable::Constant},
    {"torch.nn.parameter Parameter", Callable::Constant},
    {"torch.storage UntypedStorage", Callable::Constant},
    {"torch.storage TypedStorage", Callable::Constant},
    {"torch device", Callable::Device},
    {"torch Size", Callable::Size},
    {"torch.serialization _get_layout", Callable::Layout},
    {"torch per_tensor_affine", Callable::Constant},
    {"collections OrderedDict", Callable::Dict},
    {"collections Counter", Callable::Dict},
    {"collections defaultdict", Callable::DefaultDict},
    {"_codecs encode", Callable::Encode},
};
/// Makes a tensor subclass; not called either, and allowed only where the fields of objects are read.
constexpr std::string_view kRebuildWrapper = "torch._utils _rebuild_wrapper_subclass";
constexpr AllowedName kAllowedBuiltins[] = {
    {"set", Callable::List},   {"complex", Callable::Complex}, {"bytearray", Callable::Bytes},
    {"int", Callable::Number}, {"bool", Callable::Number},     {"float", Callable::Number},
    {"list", Callable::List},  {"dict", Callable::Dict},       {"tuple", Callable::Tuple},
};

std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
    return text.starts_with(prefix) ? std::optional(text.substr(prefix.size())) : std::nullopt;
}
std::optional<Callable> callableOf(std::string_view name) {
    for (const AllowedName& row : kAllowed)
        if (row.name == name) return row.callable;
    for (const std::string_view module : {"__builtin__ ", "builtins "})
        if (const auto rest = after(name, module))
            for (const AllowedName& row : kAllowedBuiltins)
                if (row.name == *rest) return row.callable;
    if (const auto rest = after(name, "torch "); rest && (dtypeFromTorchName(*rest) || dtypeFromStorageClass(*rest)))
        return Callable::Constant;
    return std::nullopt;
}

Result<void> refuseUnknownNames(const PickleTree& tree, const std::string& where) {
    std::string refused;
    bool module = false;
    for (const std::string& name : tree.globals)
        if (!callableOf(name)) {
            refused += (refused.empty() ? "'" : ", '") + name + "'";
            module |= name.starts_with("torch.nn.modules");
        }
    if (refused.empty()) return {};
    Error error = unsupported(
        "the pickle names " + refused + ", which is refused: making such objects means running code of the file", where,
        {"save plain tensors, lists, tuples and dicts of them"});
    if (module)
        error.notes = {"this is a whole pickled module: save its state_dict(), or export it with torch.export.save"};
    return error;
}

/// Flips the sign bit of every `step`-th component from `first` on: negation and conjugation.
void flipSigns(Tensor& packed, size_t componentBytes, size_t first, size_t step) {
    auto* bytes = static_cast<unsigned char*>(packed.data());
    for (size_t i = first; (i + 1) * componentBytes <= packed.bytes(); i += step)
        bytes[(i + 1) * componentBytes - 1] ^= 0x80;
}

class SavedReader {
  public:
    SavedReader(const ZipArchive& archive, bool bigEndian) : m_archive(archive), m_bigEndian(bigEndian) {}

    Result<SavedValue> convert(const PickleNode* node) {
        switch (node->kind) {
            case PickleKind::None: return SavedValue{};
            case PickleKind::Bool: return SavedValue{node->integer() != 0};
            case PickleKind::Int: return SavedValue{node->integer()};
            case PickleKind::Real: return SavedValue{node->real()};
            case PickleKind::Text:
            case PickleKind::Bytes: return SavedValue{node->text()};
            case PickleKind::Tuple: return convertItems(node->items, true);
            case PickleKind::List:
            case PickleKind::Set: return convertItems(node->items, false);
            case PickleKind::Dict: return convertDict(node->items);
            case PickleKind::Global: return convertConstant(node->text());
            case PickleKind::Reduce: return convertReduce(node);
            case PickleKind::Persistent: return convertStorage(node);
        }
        return fail("value of an unknown kind");
    }

  private:
    using Items = std::span<const PickleNode* const>;
    Error fail(std::string what) const { return invalidInput(std::move(what), m_archive.where() + ": data.pkl"); }
    Error wrongArguments(const PickleNode* reduce) const {
        return fail("'" + reduce->items[0]->text() + "' with arguments that it does not take");
    }

    Result<SavedValue> convertItems(Items items, bool tuple) {
        SavedItems out;
        out.reserve(items.size());
        for (const PickleNode* item : items) {
            CT_TRY(SavedValue value, convert(item));
            out.push_back(std::move(value));
        }
        return SavedValue{std::move(out), tuple};
    }
    Result<std::string> keyText(const PickleNode* key) const {
        switch (key->kind) {
            case PickleKind::Text:
            case PickleKind::Bytes:
            case PickleKind::Global: return key->text();
            case PickleKind::Int: return std::to_string(key->integer());
            case PickleKind::Bool: return std::string(key->integer() ? "True" : "False");
            case PickleKind::Real: return std::to_string(key->real());
            case PickleKind::None: return std::string("None");
            case PickleKind::Tuple: {
                std::string out = "(";
                for (const PickleNode* item : key->items) {
                    CT_TRY(const std::string inner, keyText(item));
                    out += (out.size() > 1 ? ", " : "") + inner;
                }
                return out + ")";
            }
            default: return fail("a dict key that is neither text nor a number");
        }
    }
    Result<SavedValue> convertDict(Items items) {
        auto dict = std::make_shared<SavedDict>();
        for (size_t i = 0; i + 1 < items.size(); i += 2) {
            CT_TRY(std::string key, keyText(items[i]));
            CT_TRY(SavedValue value, convert(items[i + 1]));
            dict->items.emplace_back(std::move(key), std::move(value));
        }
        return SavedValue{std::shared_ptr<const SavedDict>(std::move(dict))};
    }
    Result<SavedValue> convertConstant(const std::string& name) {
        if (const auto rest = after(name, "torch "))
            if (const auto dtype = dtypeFromTorchName(*rest)) return SavedValue{*dtype};
        return SavedValue{SavedUnsupported{name}};
    }

    // -- storages
    struct StorageId {
        std::string key;
        std::optional<DType> dtype;  // none: counted in bytes
        int64_t numel = 0;
        bool meta = false;
    };
    Result<StorageId> storageId(const PickleNode* persistent) const {
        if (persistent->kind != PickleKind::Persistent) return fail("expected a storage");
        const PickleNode* id = persistent->items[0];
        if (id->kind != PickleKind::Tuple || id->items.size() != 5 || !id->items[0]->isText("storage") ||
            id->items[1]->kind != PickleKind::Global || id->items[2]->kind != PickleKind::Text ||
            id->items[4]->kind != PickleKind::Int)
            return fail("a persistent id that does not name a storage");
        StorageId found;
        if (const auto rest = after(id->items[1]->text(), "torch ")) found.dtype = dtypeFromStorageClass(*rest);
        found.key = id->items[2]->text();
        found.numel = id->items[4]->integer();
        found.meta = id->items[3]->isText("meta");
        if (found.numel < 0) return fail("storage '" + found.key + "' has a negative size");
        return found;
    }
    /// The payload, shared by all storages with its key. `component` is the width that big-endian data is swapped by.
    Result<std::shared_ptr<Storage>*> payload(const StorageId& id, size_t component) {
        const auto found = m_storages.find(id.key);
        if (found == m_storages.end()) {
            const ZipEntry* entry = m_archive.find("data/" + id.key);
            if (entry == nullptr)
                return Error{ErrorCode::NotFound,
                             "the storage's data is not in the file",
                             m_archive.where() + ": data/" + id.key,
                             {}};
            CT_TRY(std::shared_ptr<Storage> bytes, m_archive.readLater(*entry));
            if (m_bigEndian && component > 1) {
                CT_TRY_VOID(bytes->load());
                bytes = swapped(*bytes, component);
            }
            m_storages.emplace(id.key, std::move(bytes));
        }
        std::shared_ptr<Storage>& bytes = m_storages.at(id.key);
        const size_t itemSize = id.dtype ? static_cast<size_t>(byteSize(*id.dtype)) : 1;
        if (static_cast<uint64_t>(id.numel) > bytes->size() / itemSize)
            return invalidInput(std::to_string(id.numel) + " elements of " + std::to_string(itemSize) +
                                    " bytes are promised, " + std::to_string(bytes->size()) + " bytes are there",
                                m_archive.where() + ": data/" + id.key);
        return &bytes;
    }
    static std::shared_ptr<Storage> swapped(const Storage& bytes, size_t width) {
        auto copy = Storage::allocateUninitialized(bytes.size());
        std::memcpy(copy->data(), bytes.data(), bytes.size());
        for (size_t at = 0; at + width <= copy->size(); at += width)
            std::reverse(copy->data() + at, copy->data() + at + width);
        return copy;
    }
    static size_t componentOf(DType dtype) { return static_cast<size_t>(byteSize(dtype)) / (isComplex(dtype) ? 2 : 1); }
    /// A storage by itself: its elements in a row.
    Result<SavedValue> convertStorage(const PickleNode* node) {
        CT_TRY(const StorageId id, storageId(node));
        if (id.meta) return SavedValue{SavedUnsupported{"storage without data (device meta)"}};
        const DType dtype = id.dtype.value_or(DType::U8);
        CT_TRY(std::shared_ptr<Storage>* const bytes, payload(id, componentOf(dtype)));
        CT_TRY(Tensor tensor,
               makeTensor(*bytes, dtype, {id.numel}, {1}, 0, "invalid tensor", m_archive.where() + ": data/" + id.key));
        return SavedValue{std::move(tensor)};
    }

    // -- tensors
    Result<Dims> dims(const PickleNode* node) const {
        const PickleNode* list = node;
        if (list->kind == PickleKind::Reduce && list->items[0]->text() == "torch Size" &&
            !list->items[1]->items.empty())
            list = list->items[1]->items[0];
        if (list->kind != PickleKind::Tuple && list->kind != PickleKind::List)
            return fail("sizes and strides must be tuples");
        Dims out;
        for (const PickleNode* item : list->items) {
            if (item->kind != PickleKind::Int) return fail("sizes and strides must be integers");
            out.push_back(item->integer());
        }
        return out;
    }
    Result<SavedValue> rebuildTensor(const PickleNode* reduce, Items arguments, bool v3) {
        const size_t least = v3 ? 7 : 6;
        if (arguments.size() < least || arguments[1]->kind != PickleKind::Int) return wrongArguments(reduce);
        CT_TRY(const StorageId id, storageId(arguments[0]));
        std::optional<DType> dtype = id.dtype;
        if (v3) {
            CT_TRY(const SavedValue named, convert(arguments[6]));
            const auto* found = std::get_if<DType>(&named.kind);
            if (found == nullptr) return wrongArguments(reduce);
            dtype = *found;
        }
        if (!dtype) return fail("the class of storage '" + id.key + "' has no dtype");
        if (id.meta) return SavedValue{SavedUnsupported{"tensor without data (device meta)"}};
        CT_TRY(Dims sizes, dims(arguments[2]));
        CT_TRY(Dims strides, dims(arguments[3]));
        CT_TRY(std::shared_ptr<Storage>* const bytes, payload(id, componentOf(*dtype)));
        CT_TRY(Tensor tensor, makeTensor(*bytes, *dtype, std::move(sizes), std::move(strides), arguments[1]->integer(),
                                         "invalid tensor", m_archive.where() + ": data/" + id.key));
        if (arguments.size() > least) return applyFlags(std::move(tensor), arguments[least]);
        return SavedValue{std::move(tensor)};
    }
    /// Conjugate and negative views are lazy in PyTorch; here they are computed.
    Result<SavedValue> applyFlags(Tensor tensor, const PickleNode* metadata) {
        const bool complex = isComplex(tensor.dtype());
        for (size_t i = 0; i + 1 < metadata->items.size() && metadata->kind == PickleKind::Dict; i += 2) {
            const bool set = metadata->items[i + 1]->kind == PickleKind::Bool && metadata->items[i + 1]->integer() != 0;
            const bool conj = metadata->items[i]->isText("conj"), neg = metadata->items[i]->isText("neg");
            if (!set || !(conj || neg)) continue;
            if (!complex && !isFloating(tensor.dtype()))
                return fail("a conjugate or negative view of a dtype that has none");
            CT_TRY_VOID(tensor.storage()->load());
            tensor = tensor.clone();
            if (neg) flipSigns(tensor, componentOf(tensor.dtype()), 0, 1);
            else if (complex) flipSigns(tensor, componentOf(tensor.dtype()), 1, 2);
        }
        return SavedValue{std::move(tensor)};
    }

    // -- what a REDUCE stands for
    Result<SavedValue> convertReduce(const PickleNode* node) {
        return apply(node, node->items[0]->text(), node->items[1]);
    }
    Result<SavedValue> apply(const PickleNode* node, const std::string& name, const PickleNode* argumentNode) {
        if (argumentNode->kind != PickleKind::Tuple) return wrongArguments(node);
        const Items arguments = argumentNode->items;
        const auto callable = callableOf(name);
        if (!callable) return fieldsOf(node, name, arguments);  // refuseUnknownNames came first if they are refused
        switch (*callable) {
            case Callable::RebuildTensor: return rebuildTensor(node, arguments, false);
            case Callable::RebuildTensorV3: return rebuildTensor(node, arguments, true);
            case Callable::RebuildParameter: {
                if (arguments.empty()) return wrongArguments(node);
                CT_TRY(SavedValue value, convert(arguments[0]));
                value.parameter = true;
                return value;
            }
            case Callable::RebuildMeta: return SavedValue{SavedUnsupported{"tensor without data (device meta)"}};
            case Callable::RebuildFromType: {
                if (arguments.size() < 3 || arguments[0]->kind != PickleKind::Global ||
                    arguments[1]->kind != PickleKind::Global)
                    return wrongArguments(node);
                if (arguments[0]->text() == kRebuildWrapper) return wrapperFields(arguments);
                if (!arguments[1]->text().ends_with(" Tensor") && !arguments[1]->text().ends_with(" Parameter"))
                    return SavedValue{SavedUnsupported{"tensor of class " + arguments[1]->text()}};
                if (callableOf(arguments[0]->text()) == Callable::RebuildFromType) return wrongArguments(node);
                return apply(node, arguments[0]->text(), arguments[2]);
            }
            case Callable::Unsupported: return SavedValue{SavedUnsupported{"unsupported tensor kind (" + name + ")"}};
            case Callable::Device: return device(node, arguments);
            case Callable::Size:
            case Callable::List:
            case Callable::Tuple: return sequence(node, arguments, *callable != Callable::List);
            case Callable::Dict:
            case Callable::DefaultDict: return dictionary(node, *callable == Callable::Dict ? arguments : Items());
            case Callable::Layout:
            case Callable::Number:
            case Callable::Bytes:
            case Callable::Encode: return arguments.empty() ? SavedValue{} : convert(arguments[0]);
            case Callable::Complex: return complexNumber(node, arguments);
            case Callable::Constant: return SavedValue{SavedUnsupported{"object of " + name}};
        }
        return wrongArguments(node);
    }
    /// The fields of a tensor subclass without memory of its own, the tensors that it wraps among them.
    Result<SavedValue> wrapperFields(Items arguments) {
        const PickleNode* state = arguments.size() > 3 ? arguments[3] : nullptr;
        if (state && state->kind == PickleKind::Tuple && !state->items.empty()) state = state->items[0];  // and slots
        if (state == nullptr || state->kind != PickleKind::Dict)
            return SavedValue{SavedUnsupported{"tensor of class " + arguments[1]->text()}};
        CT_TRY(const SavedValue fields, convertDict(state->items));
        SavedDict object = *fields.dict();
        object.ofClass = arguments[1]->text();
        return SavedValue{std::make_shared<const SavedDict>(std::move(object))};
    }
    /// What an object was pickled with: its state by name, else what its class would be called with, by number.
    Result<SavedValue> fieldsOf(const PickleNode* node, const std::string& name, Items arguments) {
        const PickleNode* state = node->items.size() > 2 ? node->items[2] : nullptr;
        SavedDict object;
        if (state == nullptr) {
            for (const PickleNode* argument : arguments) {
                CT_TRY(SavedValue value, convert(argument));
                object.items.emplace_back(std::to_string(object.items.size()), std::move(value));
            }
        } else if (state->kind == PickleKind::Dict) {
            CT_TRY(const SavedValue fields, convertDict(state->items));
            object = *fields.dict();
        }
        object.ofClass = name;
        return SavedValue{std::make_shared<const SavedDict>(std::move(object))};
    }
    Result<SavedValue> device(const PickleNode* node, Items arguments) {
        if (arguments.empty() || arguments[0]->kind != PickleKind::Text) return wrongArguments(node);
        std::string text = arguments[0]->text();
        if (arguments.size() > 1 && arguments[1]->kind == PickleKind::Int)
            text += ":" + std::to_string(arguments[1]->integer());
        return SavedValue{std::move(text)};
    }
    Result<SavedValue> sequence(const PickleNode* node, Items arguments, bool tuple) {
        std::vector<const PickleNode*> items;
        if (!arguments.empty()) {
            if (arguments[0]->kind != PickleKind::Tuple && arguments[0]->kind != PickleKind::List)
                return wrongArguments(node);
            items = arguments[0]->items;
        }
        items.insert(items.end(), node->items.begin() + 3, node->items.end());
        return convertItems(items, tuple);
    }
    Result<SavedValue> dictionary(const PickleNode* node, Items arguments) {
        std::vector<const PickleNode*> items;
        if (!arguments.empty() && arguments[0]->kind == PickleKind::Dict) items = arguments[0]->items;
        else if (!arguments.empty())
            for (const PickleNode* pair : arguments[0]->items) {
                if (pair == nullptr || pair->items.size() != 2 || pair->kind == PickleKind::Reduce)
                    return wrongArguments(node);
                items.insert(items.end(), pair->items.begin(), pair->items.end());
            }
        items.insert(items.end(), node->items.begin() + 3, node->items.end());
        return convertDict(items);
    }
    Result<SavedValue> complexNumber(const PickleNode* node, Items arguments) {
        if (arguments.size() != 2 || arguments[0]->kind != PickleKind::Real || arguments[1]->kind != PickleKind::Real)
            return wrongArguments(node);
        return SavedValue{std::complex<double>(arguments[0]->real(), arguments[1]->real())};
    }

    const ZipArchive& m_archive;
    std::map<std::string, std::shared_ptr<Storage>> m_storages;
    bool m_bigEndian;
};

}  // namespace

Result<SavedValue> readTorchSave(const ZipArchive& archive, SavedObjects objects) {
    const ZipEntry* entry = archive.find("data.pkl");
    if (entry == nullptr) return invalidInput("no data.pkl; this is not a torch.save file", archive.where());
    bool bigEndian = false;
    if (archive.find("byteorder")) {
        CT_TRY(const std::string order, archive.readText("byteorder", ZipArchive::kMaxMarker));
        bigEndian = order.starts_with("big");
    }
    CT_TRY(const std::shared_ptr<Storage> bytes, archive.read(*entry));
    const std::string where = archive.where() + ": data.pkl";
    CT_TRY(const PickleTree tree, parsePickle({bytes->data(), bytes->size()}, where));
    if (objects == SavedObjects::Refused) CT_TRY_VOID(refuseUnknownNames(tree, where));
    return SavedReader(archive, bigEndian).convert(tree.root);
}
Result<SavedValue> readTorchSave(ByteSource source, const std::string& where, SavedObjects objects) {
    CT_TRY(const ZipArchive archive, ZipArchive::open(std::move(source), where));
    return readTorchSave(archive, objects);
}

std::vector<std::pair<std::string, Tensor>> tensorsOf(const SavedValue& value) {
    std::vector<std::pair<std::string, Tensor>> out;
    const auto visit = [&](const auto& self, const SavedValue& item, const std::string& name) -> void {
        if (const Tensor* tensor = item.tensor()) out.emplace_back(name, *tensor);
        const std::string prefix = name.empty() ? name : name + ".";
        if (const SavedDict* dict = item.dict())
            for (const auto& [key, inner] : dict->items) self(self, inner, prefix + key);
        if (const SavedItems* items = item.items())
            for (size_t i = 0; i < items->size(); ++i) self(self, (*items)[i], prefix + std::to_string(i));
    };
    visit(visit, value, "");
    return out;
}

void flatten(const SavedValue& value, std::vector<SavedValue>& out) {
    if (const SavedDict* dict = value.dict())
        for (const auto& [key, inner] : dict->items) flatten(inner, out);
    else if (const SavedItems* items = value.items())
        for (const SavedValue& item : *items) flatten(item, out);
    else out.push_back(value);
}

}  // namespace cutaway
