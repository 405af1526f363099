#include "engine/ir/graph.h"

#include "engine/ir/names.h"
#include "engine/support/check.h"

namespace cutaway {

const Op& Node::op() const {
    CT_CHECK(m_op != nullptr, "only calls have an op");
    return *m_op;
}
const Argument& Node::arg(std::string_view param) const {
    const Schema* schema = op().schema();
    CT_CHECK(schema != nullptr, "arguments have names only where there is a schema");
    const int position = schema->find(param);
    CT_CHECK(position >= 0, "the op has this parameter");
    return m_args[static_cast<size_t>(position)];
}
const TensorType& Node::tensor() const {
    CT_CHECK(m_type.tensor() != nullptr, "the caller knows that this value is a tensor");
    return *m_type.tensor();
}
std::vector<Node*> Node::inputs() const {
    std::vector<Node*> found;
    auto visit = [&](Node* node) {
        if (std::find(found.begin(), found.end(), node) == found.end()) found.push_back(node);
    };
    for (const Argument& arg : m_args) arg.forEachNode(visit);
    for (const auto& [key, arg] : m_kwargs) arg.forEachNode(visit);
    return found;
}

bool isReservedName(std::string_view name) {
    static constexpr std::string_view kReserved[] = {
        "torch", "operator", "_operator", "math", "aten", "prims", "higher_order", "self", "builtins", "device", "infj", "nanj", "slice",
        "getattr", "iter", "next", "fx_pytree", "pytree", "float", "return", "pass", "def", "class", "tensor", "Parameter"};
    return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

std::string Graph::uniqueName(std::string_view hint) {
    std::string base;
    for (char c : hint) base += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
    if (!m_names.contains(base) && !isReservedName(base)) return base;
    // Numbering goes on from the stem, as FX does: "mul_2" taken -> next free "mul_N".
    std::string stem = base;
    if (auto underscore = stem.rfind('_');
        underscore != std::string::npos && underscore > 0 && underscore + 1 < stem.size() &&
        std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(underscore) + 1, stem.end(), [](unsigned char c) { return std::isdigit(c); }))
        stem.resize(underscore);
    int& next = m_nextSuffix[stem];
    std::string name;
    do name = stem + "_" + std::to_string(++next);
    while (m_names.contains(name));
    return name;
}

void Graph::link(Node& node, Node* before) {
    node.m_next = before;
    node.m_previous = before ? before->m_previous : m_last;
    (node.m_previous ? node.m_previous->m_next : m_first) = &node;
    (before ? before->m_previous : m_last) = &node;
    const uint64_t low = node.m_previous ? node.m_previous->m_order : 0;
    const uint64_t high = before ? before->m_order : low + (uint64_t{1} << 33);
    node.m_order = low + (high - low) / 2;
    if (node.m_order <= low) m_orderDirty = true;
}
void Graph::unlink(Node& node) {
    (node.m_previous ? node.m_previous->m_next : m_first) = node.m_next;
    (node.m_next ? node.m_next->m_previous : m_last) = node.m_previous;
    node.m_next = node.m_previous = nullptr;
}
void Graph::renumber() const {
    uint64_t order = 0;
    for (Node* node = m_first; node; node = node->m_next) node->m_order = order += uint64_t{1} << 32;
    m_orderDirty = false;
}
bool Graph::isBefore(const Node& a, const Node& b) const {
    if (m_orderDirty) renumber();
    return a.m_order < b.m_order;
}

void Graph::addUses(Node& node) {
    for (Node* input : node.inputs()) {
        CT_CHECK(input->m_graph == this, "arguments are nodes of the same graph");
        if (std::find(input->m_users.begin(), input->m_users.end(), &node) == input->m_users.end())
            input->m_users.push_back(&node);
    }
}
void Graph::dropUses(Node& node) {
    for (Node* input : node.inputs()) std::erase(input->m_users, &node);
}

Node& Graph::insert(std::unique_ptr<Node> node, Node* before, std::string_view nameHint) {
    node->m_graph = this;
    node->m_id = static_cast<NodeId>(m_slots.size());
    node->m_name = uniqueName(nameHint);
    m_names.emplace(node->m_name, node->m_id);
    Node& placed = *node;
    m_slots.push_back(std::move(node));
    ++m_size;
    link(placed, before);
    addUses(placed);
    return placed;
}

Node& Graph::placeholder(std::string_view name, ValueType type, Node* before) {
    auto node = std::make_unique<Node>();
    node->m_kind = NodeKind::Placeholder;
    node->m_target = std::string(name);
    node->m_type = std::move(type);
    return insert(std::move(node), before, name);
}
Node& Graph::getAttr(std::string_view target, ValueType type, Node* before, std::string_view name) {
    auto node = std::make_unique<Node>();
    node->m_kind = NodeKind::GetAttr;
    node->m_target = std::string(target);
    node->m_type = std::move(type);
    return insert(std::move(node), before, name.empty() ? target : name);
}
Node& Graph::call(const Op& op, std::vector<Argument> args, ValueType type, Node* before, std::string_view name,
                  std::vector<std::pair<std::string, Argument>> kwargs) {
    CT_CHECK(op.schema() == nullptr || (args.size() == op.schema()->params.size() && kwargs.empty()),
             "arguments of known ops are bound to the schema");
    auto node = std::make_unique<Node>();
    node->m_kind = NodeKind::Call;
    node->m_op = &op;
    node->m_args = std::move(args);
    node->m_kwargs = std::move(kwargs);
    node->m_type = std::move(type);
    return insert(std::move(node), before, name.empty() ? op.baseName() : name);
}
Node& Graph::output(Argument value) {
    CT_CHECK(m_output == nullptr, "a graph has one output node");
    auto node = std::make_unique<Node>();
    node->m_kind = NodeKind::Output;
    node->m_args.push_back(std::move(value));
    return *(m_output = &insert(std::move(node), nullptr, "output"));
}

void Graph::setArg(Node& node, size_t position, Argument value) {
    dropUses(node);
    node.m_args[position] = std::move(value);
    addUses(node);
}
void Graph::setArgs(Node& node, std::vector<Argument> args) {
    dropUses(node);
    node.m_args = std::move(args);
    addUses(node);
}
void Graph::setOp(Node& node, const Op& op, std::vector<Argument> args, ValueType type,
                  std::vector<std::pair<std::string, Argument>> kwargs) {
    CT_CHECK(node.isCall(), "only calls have an op");
    CT_CHECK(op.schema() == nullptr || (args.size() == op.schema()->params.size() && kwargs.empty()), "arguments of known ops are bound to the schema");
    dropUses(node);
    node.m_op = &op;
    node.m_args = std::move(args);
    node.m_kwargs = std::move(kwargs);
    node.m_type = std::move(type);
    addUses(node);
}
void Graph::setType(Node& node, ValueType type) { node.m_type = std::move(type); }
void Graph::rename(Node& node, std::string_view name) {
    if (node.m_name == name) return;
    m_names.erase(node.m_name);
    node.m_name = uniqueName(name);
    m_names.emplace(node.m_name, node.m_id);
}
void Graph::renameParameter(Node& placeholder, std::string_view name) {
    rename(placeholder, name);
    placeholder.m_target = placeholder.m_name;
}
void Graph::replaceInput(Node& user, Node& old, Node& replacement) {
    auto map = [&](Node* node) { return node == &old ? &replacement : node; };
    std::vector<Argument> args;
    args.reserve(user.m_args.size());
    for (const Argument& arg : user.m_args) args.push_back(arg.mapNodes(map));
    std::vector<std::pair<std::string, Argument>> kwargs;
    for (const auto& [key, arg] : user.m_kwargs) kwargs.emplace_back(key, arg.mapNodes(map));
    user.m_args = std::move(args);
    user.m_kwargs = std::move(kwargs);
    std::erase(old.m_users, &user);
    if (std::find(replacement.m_users.begin(), replacement.m_users.end(), &user) == replacement.m_users.end())
        replacement.m_users.push_back(&user);
}
void Graph::erase(Node& node) {
    CT_CHECK(node.m_users.empty(), "only nodes that nobody reads can be erased");
    dropUses(node);
    unlink(node);
    m_names.erase(node.m_name);
    if (m_output == &node) m_output = nullptr;
    --m_size;
    m_slots[index(node.m_id)].reset();
}
void Graph::moveBefore(Node& node, Node& position) {
    if (&node == &position || node.m_next == &position) return;
    unlink(node);
    link(node, &position);
}
void Graph::reserveIds(uint32_t limit) {
    if (m_slots.size() < limit) m_slots.resize(limit);
}

Node* Graph::findByName(std::string_view name) const {
    auto found = m_names.find(std::string(name));
    return found == m_names.end() ? nullptr : find(found->second);
}
std::vector<Node*> Graph::placeholders() const {
    std::vector<Node*> found;
    for (Node& node : nodes())
        if (node.isPlaceholder()) found.push_back(&node);
    return found;
}
std::vector<Argument> Graph::outputs() const {
    if (m_output == nullptr) return {};
    const Argument& value = m_output->arg(0);
    if (const auto* items = value.list()) return *items;
    return {value};
}
std::vector<Node*> Graph::nodeList() const {
    std::vector<Node*> all;
    all.reserve(m_size);
    for (Node& node : nodes()) all.push_back(&node);
    return all;
}

std::unique_ptr<Graph> Graph::clone() const {
    auto copy = std::make_unique<Graph>();
    copy->m_slots.resize(m_slots.size());
    for (const auto& slot : m_slots)
        if (slot) {
            copy->m_slots[index(slot->m_id)] = std::make_unique<Node>(*slot);
            copy->m_slots[index(slot->m_id)]->m_graph = copy.get();
        }
    auto twin = [&](const Node* node) -> Node* { return node ? copy->m_slots[index(node->m_id)].get() : nullptr; };
    for (auto& slot : copy->m_slots) {
        if (!slot) continue;
        for (Argument& arg : slot->m_args) arg = arg.mapNodes(twin);
        for (auto& [key, arg] : slot->m_kwargs) arg = arg.mapNodes(twin);
        for (Node*& user : slot->m_users) user = twin(user);
        slot->m_next = twin(slot->m_next);
        slot->m_previous = twin(slot->m_previous);
    }
    copy->m_first = twin(m_first);
    copy->m_last = twin(m_last);
    copy->m_output = twin(m_output);
    copy->m_size = m_size;
    copy->m_names = m_names;
    copy->m_nextSuffix = m_nextSuffix;
    copy->m_orderDirty = m_orderDirty;
    return copy;
}

}  // namespace cutaway
