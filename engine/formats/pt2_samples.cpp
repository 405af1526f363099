#include "engine/formats/pt2_samples.h"

#include <algorithm>
#include <optional>

#include "engine/formats/torch_save.h"

namespace cutaway {
namespace {

/// The document of in_spec; null if the file has none.
std::unique_ptr<JsonDocument> inputSpec(const Json& root) {
    const auto graphModule = root.find("graph_module");
    const auto calls = graphModule ? graphModule->find("module_call_graph") : std::nullopt;
    if (!calls || calls->items().size() == 0) return nullptr;
    const auto signature = Json(*calls->items().begin()).find("signature");
    const auto text = signature ? signature->find("in_spec") : std::nullopt;
    if (!text || !text->text()) return nullptr;
    auto spec = parseJson(*text->text(), "in_spec");
    return spec ? std::move(*spec) : nullptr;
}

bool holdsObject(const SavedValue& value) {
    if (const SavedItems* items = value.items()) return std::any_of(items->begin(), items->end(), holdsObject);
    const SavedDict* dict = value.dict();
    return dict && (!dict->ofClass.empty() || std::any_of(dict->items.begin(), dict->items.end(),
                                                          [](const auto& item) { return holdsObject(item.second); }));
}

/// The keys of a dict, or the fields of a dataclass ([fields, those that are None]), in the order of its children.
std::vector<std::string> keysOf(const Json& spec) {
    std::vector<std::string> keys;
    const auto context = spec.find("context");
    const auto document = context && context->text() ? parseJson(*context->text(), "in_spec context")
                                                     : Result<std::unique_ptr<JsonDocument>>(nullptr);
    if (!document || !*document) return keys;
    Json list = (*document)->root;
    if (list.items().size() == 2 && Json(*list.items().begin()).isArray()) list = *list.items().begin();
    for (const Json key : list.items()) {
        if (const auto text = key.text()) keys.emplace_back(*text);
        else if (const auto number = key.integer()) keys.push_back(std::to_string(*number));
        else return {};
    }
    return keys;
}

/// The leaves of `value` in the order of the spec. Errors name the class whose fields the spec does not.
Result<void> flattenAs(const Json& spec, const SavedValue& value, std::vector<SavedValue>& out) {
    std::vector<Json> children;
    if (const auto list = spec.find("children_spec"))
        for (const Json child : list->items()) children.push_back(child);
    const SavedDict* dict = value.dict();
    if (const SavedItems* items = value.items(); items && items->size() == children.size()) {
        for (size_t i = 0; const Json& child : children) CT_TRY_VOID(flattenAs(child, (*items)[i++], out));
        return {};
    }
    const auto type = spec.find("type");
    if (dict && type && type->text() == "collections.namedtuple" && dict->items.size() == children.size()) {
        for (size_t i = 0; const Json& child : children) CT_TRY_VOID(flattenAs(child, dict->items[i++].second, out));
        return {};
    }
    const std::vector<std::string> keys = dict ? keysOf(spec) : std::vector<std::string>();
    std::vector<const SavedValue*> named;
    for (const std::string& key : keys)
        for (const auto& [name, item] : dict->items)
            if (name == key) named.push_back(&item);
    if (dict && named.size() == keys.size() && keys.size() == children.size()) {
        for (size_t i = 0; const Json& child : children) CT_TRY_VOID(flattenAs(child, *named[i++], out));
        return {};
    }
    if (holdsObject(value))
        return unsupported("how an object of class '" + (dict ? dict->ofClass : std::string("?")) +
                           "' is made of tensors is known to its own code only");
    flatten(value, out);
    return {};
}

}  // namespace

void readSampleInputs(const ZipArchive& archive, const std::string& entryName, const Json& root, OpenedGraph& graph) {
    const ZipEntry* entry = archive.find(entryName);
    if (entry == nullptr || entry->size == 0) return;
    const auto leaveOut = [&](const std::string& why) {
        graph.noSamples = why;
        graph.module->origin.remarks.push_back(why);
    };
    auto source = archive.source(*entry);
    if (!source) return leaveOut("sample inputs cannot be read: " + source.error().text());
    auto value = readTorchSave(std::move(*source), archive.where() + ": " + entryName, SavedObjects::AsFields);
    if (!value) return leaveOut("sample inputs cannot be read: " + value.error().text());
    if (value->isNone()) return;
    std::vector<SavedValue> flat;
    const std::unique_ptr<JsonDocument> document = inputSpec(root);
    std::optional<Json> tree;  // [version of the text, spec]
    if (document && document->root.items().size() == 2) tree = Json(document->root.items().at(1).value_unsafe());
    if (!tree && holdsObject(*value))
        return leaveOut("sample inputs cannot be read: they hold objects, and the file has no in_spec");
    if (!tree) flatten(*value, flat);
    else if (const auto done = flattenAs(*tree, *value, flat); !done)
        return leaveOut("sample inputs cannot be read: " + done.error().text());
    std::vector<SavedValue> inputs;
    size_t next = 0;
    for (const InputSpec& spec : graph.module->inputs) {
        if (spec.kind != InputSpec::Kind::UserInput && spec.kind != InputSpec::Kind::ConstantInput) continue;
        if (next >= flat.size()) return leaveOut("sample inputs: fewer values than the program has inputs; left out");
        if (spec.kind == InputSpec::Kind::UserInput) inputs.push_back(flat[next]);
        ++next;
    }
    if (next != flat.size())
        return leaveOut("sample inputs: " + std::to_string(flat.size()) + " values for " + std::to_string(next) +
                        " inputs; left out");
    graph.sampleInputs = std::move(inputs);
}

}  // namespace cutaway
