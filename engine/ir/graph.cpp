#include "engine/ir/graph.h"

#include <algorithm>
#include <unordered_set>

#include "engine/ir/names.h"
#include "engine/support/characters.h"
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
    CT_CHECK(m_type->tensor() != nullptr, "the caller knows that this value is a tensor");
    return *m_type->tensor();
}
std::vector<Node*> Node::inputs() const {
    constexpr size_t kFew = 32;
    std::vector<Node*> found;
    std::unordered_set<const Node*> seen;  // once there are many: the output of a training graph returns every gradient
    forEachInput([&](Node* node) {
        if (found.size() < kFew) {
            if (std::find(found.begin(), found.end(), node) == found.end()) found.push_back(node);
            return;
        }
        if (seen.empty()) seen.insert(found.begin(), found.end());
        if (seen.insert(node).second) found.push_back(node);
    });
    return found;
}

namespace {

const std::shared_ptr<const ValueType>& noType() {
    static const auto kNone = std::make_shared<const ValueType>();
    return kNone;
}
const std::shared_ptr<const Provenance>& noProvenance() {
    static const auto kNone = std::make_shared<const Provenance>();
    return kNone;
}

}  // namespace

Node::Node(Graph& graph, NodeKind kind)
    : m_graph(&graph), m_kind(kind), m_type(noType()), m_provenance(noProvenance()) {}
Node::Node(Graph& graph, const Node& other)
    : m_graph(&graph),
      m_id(other.m_id),
      m_kind(other.m_kind),
      m_op(other.m_op),
      m_name(other.m_name),
      m_target(other.m_target),
      m_type(other.m_type),
      m_provenance(other.m_provenance),
      m_contentHash(other.m_contentHash),
      m_order(other.m_order) {}

bool isReservedName(std::string_view name) {
    static constexpr std::string_view kReserved[] = {
        "torch", "operator", "_operator", "math", "aten", "prims", "higher_order", "self", "builtins", "device", "inf",
        "nan", "infj", "nanj", "NoneType", "Ellipsis", "slice", "getattr", "iter", "next", "fx_pytree", "pytree",
        "float", "tensor", "Parameter",
        // What Python keeps for itself.
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
        "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
        "not", "or", "pass", "raise", "return", "try", "while", "with", "yield"};
    return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

std::string Graph::uniqueName(std::string_view hint) {
    std::string base;
    while (!hint.empty()) {
        const size_t length = nameCharacter(hint);
        base += length > 0 ? hint.substr(0, length) : "_";
        hint.remove_prefix(std::max<size_t>(length, 1));
    }
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
    if (idOfName(base) == NodeId::None && !isReservedName(base)) return base;
    // Numbering goes on from the stem, as FX does: "mul_2" taken -> next free "mul_N".
    std::string stem = base;
    if (auto underscore = stem.rfind('_'); underscore != std::string::npos && underscore > 0 &&
                                           underscore + 1 < stem.size() &&
                                           std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(underscore) + 1,
                                                       stem.end(), [](unsigned char c) { return std::isdigit(c); }))
        stem.resize(underscore);
    int& next = m_nextSuffix[stem];
    std::string name;
    do name = stem + "_" + std::to_string(++next);
    while (idOfName(name) != NodeId::None);
    return name;
}

void Graph::link(Node& node, Node* before) {
    node.m_next = before;
    node.m_previous = before ? before->m_previous : m_last;
    (node.m_previous ? node.m_previous->m_next : m_first) = &node;
    (before ? before->m_previous : m_last) = &node;
    const uint64_t low = node.m_previous ? node.m_previous->m_order : 0;
    // Often many nodes are inserted before one: halving the gap each time would use up 2^32 numbers in 32 steps.
    constexpr uint64_t kStep = uint64_t{1} << 18, kRoom = uint64_t{1} << 32;
    node.m_order = before ? low + std::min((before->m_order - low) / 2, kStep) : low + kRoom;
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

void Graph::touch(Node& node) {
    ++m_edits;
    node.m_contentHash.reset();
}
void Graph::addUses(Node& node) {
    node.forEachInput([&](Node* input) {
        CT_CHECK(input->m_graph == this, "arguments are nodes of the same graph");
        // A user is listed once. The node was in no list before, so a repeated input has it as its latest user.
        if (input->m_users.empty() || input->m_users.back() != &node) input->m_users.push_back(&node);
    });
}
void Graph::dropUses(Node& node) {
    // A constant may have thousands of readers, which mostly stand by their ids; else one of the first or last goes.
    constexpr size_t kMany = 64;
    node.forEachInput([&](Node* input) {
        auto& users = input->m_users;
        if (users.size() > kMany) {
            const auto at = std::lower_bound(users.begin(), users.end(), node.m_id,
                                             [](const Node* user, NodeId id) { return user->m_id < id; });
            if (at != users.end() && *at == &node) {
                users.erase(at);
                return;
            }
        }
        for (size_t low = 0, high = users.size(); low < high; ++low) {
            if (users[low] == &node) users.erase(users.begin() + static_cast<std::ptrdiff_t>(low));
            else if (users[--high] == &node) users.erase(users.begin() + static_cast<std::ptrdiff_t>(high));
            else continue;
            return;
        }
    });
}

std::unique_ptr<Node> Graph::make(NodeKind kind) { return std::unique_ptr<Node>(new Node(*this, kind)); }

Node& Graph::insert(std::unique_ptr<Node> node, Node* before, std::string_view nameHint) {
    node->m_id = static_cast<NodeId>(m_slots.limit());
    node->m_name = uniqueName(nameHint);
    m_names.insert(node->m_name, node->m_id);
    Node& placed = m_slots.put(std::move(node));
    ++m_size;
    link(placed, before);
    touch(placed);
    addUses(placed);
    return placed;
}

Node& Graph::append(std::unique_ptr<Node> node) {
    CT_CHECK(!m_slots.find(node->m_id), "a node is taken once");
    if (findByName(node->m_name)) node->m_name = uniqueName(node->m_name);
    m_names.insert(node->m_name, node->m_id);
    Node& placed = m_slots.put(std::move(node));
    ++m_size;
    link(placed, nullptr);
    touch(placed);
    addUses(placed);
    return placed;
}
Node& Graph::take(const Node& other) {
    std::unique_ptr<Node> node(new Node(*this, other));
    const auto twin = [&](const Node* read) {
        Node* found = find(read->m_id);
        CT_CHECK(found, "what a node reads is taken before it");
        return found;
    };
    for (const Argument& arg : other.m_args) node->m_args.push_back(arg.mapNodes(twin));
    for (const auto& [key, arg] : other.m_kwargs) node->m_kwargs.emplace_back(key, arg.mapNodes(twin));
    return append(std::move(node));
}
Node& Graph::takeAsInput(const Node& other) {
    std::unique_ptr<Node> node(new Node(*this, other));
    node->m_kind = NodeKind::Placeholder;
    node->m_op = nullptr;
    if (!other.isPlaceholder()) node->m_target = other.name();
    return append(std::move(node));
}

Node& Graph::takeAs(const Node& other, NodeId id) {
    std::unique_ptr<Node> node(new Node(*this, other));
    node->m_id = id;
    return append(std::move(node));
}

Node& Graph::placeholder(std::string_view name, ValueType type, Node* before) {
    auto node = make(NodeKind::Placeholder);
    node->m_target = std::string(name);
    node->m_type = std::make_shared<const ValueType>(std::move(type));
    return insert(std::move(node), before, name);
}
Node& Graph::getAttr(std::string_view target, ValueType type, Node* before, std::string_view name) {
    auto node = make(NodeKind::GetAttr);
    node->m_target = std::string(target);
    node->m_type = std::make_shared<const ValueType>(std::move(type));
    return insert(std::move(node), before, name.empty() ? target : name);
}
Node& Graph::call(const Op& op, std::vector<Argument> args, ValueType type, Node* before, std::string_view name,
                  std::vector<std::pair<std::string, Argument>> kwargs) {
    CT_CHECK(op.schema() == nullptr || (args.size() == op.schema()->params.size() && kwargs.empty()),
             "arguments of known ops are bound to the schema");
    auto node = make(NodeKind::Call);
    node->m_op = &op;
    node->m_args = std::move(args);
    node->m_kwargs = std::move(kwargs);
    node->m_type = std::make_shared<const ValueType>(std::move(type));
    return insert(std::move(node), before, name.empty() ? op.baseName() : name);
}
Node& Graph::output(Argument value) {
    CT_CHECK(m_output == nullptr, "a graph has one output node");
    auto node = make(NodeKind::Output);
    node->m_args.push_back(std::move(value));
    return *(m_output = &insert(std::move(node), nullptr, "output"));
}

void Graph::setArg(Node& node, size_t position, Argument value) {
    touch(node);
    dropUses(node);
    node.m_args[position] = std::move(value);
    addUses(node);
}
void Graph::setArgs(Node& node, std::vector<Argument> args) {
    touch(node);
    dropUses(node);
    node.m_args = std::move(args);
    addUses(node);
}
void Graph::setOp(Node& node, const Op& op, std::vector<Argument> args, ValueType type,
                  std::vector<std::pair<std::string, Argument>> kwargs) {
    CT_CHECK(node.isCall(), "only calls have an op");
    CT_CHECK(op.schema() == nullptr || (args.size() == op.schema()->params.size() && kwargs.empty()),
             "arguments of known ops are bound to the schema");
    touch(node);
    dropUses(node);
    node.m_op = &op;
    node.m_args = std::move(args);
    node.m_kwargs = std::move(kwargs);
    node.m_type = std::make_shared<const ValueType>(std::move(type));
    addUses(node);
}
void Graph::setType(Node& node, ValueType type) {
    touch(node);
    node.m_type = std::make_shared<const ValueType>(std::move(type));
}
void Graph::setProvenance(Node& node, std::shared_ptr<const Provenance> provenance) {
    ++m_edits;
    node.m_provenance = std::move(provenance);
}
void Graph::rename(Node& node, std::string_view name) {
    if (node.m_name == name) return;
    ++m_edits;
    m_names.erase(node.m_name, node.m_id);
    node.m_name = uniqueName(name);
    m_names.insert(node.m_name, node.m_id);
}
void Graph::renameParameter(Node& placeholder, std::string_view name) {
    rename(placeholder, name);
    touch(placeholder);
    placeholder.m_target = placeholder.m_name;
}
void Graph::exchangeInput(Node& user, Node& old, Node& replacement) {
    touch(user);
    bool listed = false;
    user.forEachInput([&](const Node* input) { listed |= input == &replacement; });
    auto map = [&](Node* node) { return node == &old ? &replacement : node; };
    for (Argument& arg : user.m_args) arg = arg.mapNodes(map);
    for (auto& [key, arg] : user.m_kwargs) arg = arg.mapNodes(map);
    if (!listed) replacement.m_users.push_back(&user);
}
void Graph::replaceInput(Node& user, Node& old, Node& replacement) {
    if (&old == &replacement) return;
    exchangeInput(user, old, replacement);
    std::erase(old.m_users, &user);
}
void Graph::erase(Node& node) {
    CT_CHECK(node.m_users.empty(), "only nodes that nobody reads can be erased");
    ++m_edits;
    dropUses(node);
    unlink(node);
    m_names.erase(node.m_name, node.m_id);
    if (m_output == &node) m_output = nullptr;
    --m_size;
    m_slots.drop(node.m_id);
}
void Graph::moveBefore(Node& node, Node& position) {
    if (&node == &position || node.m_next == &position) return;
    ++m_edits;
    unlink(node);
    link(node, &position);
}
void Graph::reserveIds(uint32_t limit) {
    if (m_slots.limit() >= limit) return;
    ++m_edits;
    m_slots.reserve(limit);
}

NodeId Graph::idOfName(std::string_view name) const {
    return m_names.find(name, [this](NodeId id) { return std::string_view(m_slots.find(id)->m_name); });
}
Node* Graph::findByName(std::string_view name) const {
    const NodeId id = idOfName(name);
    return id == NodeId::None ? nullptr : m_slots.find(id);
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
    copy->m_slots.reserve(m_slots.limit());
    for (const Node* node = m_first; node; node = node->m_next)
        copy->m_slots.put(std::unique_ptr<Node>(new Node(*copy, *node)));
    auto twin = [&](const Node* node) -> Node* { return node ? copy->m_slots.find(node->m_id) : nullptr; };
    for (const Node* node = m_first; node; node = node->m_next) {
        Node& made = *twin(node);
        made.m_args.reserve(node->m_args.size());
        for (const Argument& arg : node->m_args) made.m_args.push_back(arg.mapNodes(twin));
        made.m_kwargs.reserve(node->m_kwargs.size());
        for (const auto& [key, arg] : node->m_kwargs) made.m_kwargs.emplace_back(key, arg.mapNodes(twin));
        made.m_users.reserve(node->m_users.size());
        for (const Node* user : node->m_users) made.m_users.push_back(twin(user));
        made.m_next = twin(node->m_next);
        made.m_previous = twin(node->m_previous);
    }
    copy->m_first = twin(m_first);
    copy->m_last = twin(m_last);
    copy->m_output = twin(m_output);
    copy->m_size = m_size;
    copy->m_names = m_names;
    copy->m_nextSuffix = m_nextSuffix;
    copy->m_edits = m_edits;
    copy->m_orderDirty = m_orderDirty;
    return copy;
}

}  // namespace cutaway
