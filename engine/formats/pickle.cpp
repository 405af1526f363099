#include "engine/formats/pickle.h"

#include <bit>
#include <cstdio>

#include "engine/formats/byte_cursor.h"

namespace cutaway {
namespace {

constexpr size_t kMaxNodes = 10'000'000, kMaxStack = 10'000'000;
constexpr uint64_t kMaxString = uint64_t{1} << 30;
constexpr int kMaxPickleDepth = 256;

/// Checks for cycles and computes depth and size of the tree below each node, before it is walked.
class ShapeCheck {
  public:
    explicit ShapeCheck(const std::string& where) : m_where(where) {}
    Result<void> run(const PickleNode& root) {
        auto found = visit(&root, 0);
        if (!found) return std::move(found).error();
        return {};
    }

  private:
    struct Extent {
        int height = 0;
        uint64_t size = 0;
        bool open = false;
    };
    Error fail(std::string what) const { return Error{ErrorCode::Limit, std::move(what), m_where, {}}; }
    Result<Extent> visit(const PickleNode* node, int depth) {
        if (depth > kMaxPickleDepth) return fail("nested more than 256 levels deep");
        if (const auto found = m_known.find(node); found != m_known.end()) {
            if (found->second.open) return fail("a container holds itself");
            if (depth + found->second.height > kMaxPickleDepth) return fail("nested more than 256 levels deep");
            return found->second;
        }
        if (node->items.empty()) return Extent{0, 1, false};
        m_known[node].open = true;
        Extent extent{0, 1, false};
        for (const PickleNode* item : node->items) {
            if (item == nullptr) continue;
            CT_TRY(const Extent inner, visit(item, depth + 1));
            extent.height = std::max(extent.height, inner.height + 1);
            extent.size += inner.size;
            if (extent.size > kMaxNodes) return fail("more than 10000000 values");
        }
        return m_known[node] = extent;
    }
    const std::string& m_where;
    std::unordered_map<const PickleNode*, Extent> m_known;
};

class PickleMachine {
  public:
    PickleMachine(std::span<const std::byte> bytes, const std::string& where) : m_cursor(bytes), m_where(where) {}

    Result<PickleTree> run() {
        while (!m_done) {
            m_opcodeAt = m_cursor.position();
            const auto opcode = m_cursor.read<uint8_t>();
            if (!opcode) return fail("ends without STOP");
            m_opcode = *opcode;
            if (!step()) return std::move(m_error).value_or(fail("its operand is cut short or out of range"));
            if (m_tree.nodes.size() > kMaxNodes || m_stack.size() > kMaxStack) return fail("more than 10000000 values");
        }
        CT_TRY_VOID(ShapeCheck(m_where).run(*m_tree.root));
        return std::move(m_tree);
    }

  private:
    Error fail(std::string what) const {
        char opcode[48];
        std::snprintf(opcode, sizeof opcode, "opcode 0x%02x at byte %zu", static_cast<unsigned>(m_opcode), m_opcodeAt);
        return invalidInput("pickle: " + std::string(opcode) + ": " + std::move(what), m_where);
    }
    bool refuse(std::string what) {
        m_error = fail(std::move(what));
        return false;
    }

    PickleNode* make(PickleKind kind) {
        m_tree.nodes.emplace_back();
        m_tree.nodes.back().kind = kind;
        return &m_tree.nodes.back();
    }
    bool push(PickleNode* node) {
        m_stack.push_back(node);
        return true;
    }
    bool pushInteger(std::optional<int64_t> value, PickleKind kind = PickleKind::Int) {
        if (!value) return false;
        PickleNode* node = make(kind);
        node->value = *value;
        return push(node);
    }
    bool pushText(std::optional<std::string_view> text, PickleKind kind = PickleKind::Text) {
        if (!text) return false;
        PickleNode* node = make(kind);
        node->value = std::string(*text);
        return push(node);
    }
    template <class Length>
    std::optional<std::string_view> counted() {
        const auto length = m_cursor.read<Length>();
        if (!length || *length > kMaxString) return std::nullopt;
        return m_cursor.text(*length);
    }

    size_t floor() const { return m_marks.empty() ? 0 : m_marks.back(); }
    PickleNode* pop() {
        if (m_stack.size() <= floor()) {
            refuse("the stack is empty");
            return nullptr;
        }
        PickleNode* top = m_stack.back();
        m_stack.pop_back();
        return top;
    }
    PickleNode* top() {
        if (m_stack.size() > floor()) return m_stack.back();
        refuse("the stack is empty");
        return nullptr;
    }
    std::optional<std::vector<const PickleNode*>> popToMark() {
        if (m_marks.empty()) {
            refuse("no MARK on the stack");
            return std::nullopt;
        }
        std::vector<const PickleNode*> items(m_stack.begin() + static_cast<std::ptrdiff_t>(m_marks.back()),
                                             m_stack.end());
        m_stack.resize(m_marks.back());
        m_marks.pop_back();
        return items;
    }
    bool pushTuple(std::optional<std::vector<const PickleNode*>> items) {
        if (!items) return false;
        PickleNode* node = make(PickleKind::Tuple);
        node->items = std::move(*items);
        return push(node);
    }
    bool pushTuple(size_t count) {
        std::vector<const PickleNode*> items(count);
        for (size_t i = count; i-- > 0;)
            if ((items[i] = pop()) == nullptr) return false;
        return pushTuple(std::move(items));
    }
    /// APPEND(S) and SETITEM(S): onto a container, or onto an object that a REDUCE would have made.
    bool extend(std::optional<std::vector<const PickleNode*>> items, PickleKind plain) {
        if (!items) return false;
        PickleNode* target = top();
        if (target == nullptr) return false;
        if (target->kind != plain && target->kind != PickleKind::Reduce)
            return refuse("the target is not a list or dict");
        if (plain == PickleKind::Dict && items->size() % 2 != 0) return refuse("a key without a value");
        if ((m_items += items->size()) > kMaxNodes) return refuse("more than 10000000 items");
        target->items.insert(target->items.end(), items->begin(), items->end());
        return true;
    }
    bool extendBy(size_t count, PickleKind plain) {
        std::vector<const PickleNode*> items(count);
        for (size_t i = count; i-- > 0;)
            if ((items[i] = pop()) == nullptr) return false;
        return extend(std::move(items), plain);
    }
    bool reduce() {
        PickleNode* arguments = pop();
        PickleNode* callable = arguments ? pop() : nullptr;
        if (callable == nullptr) return false;
        if (callable->kind != PickleKind::Global) return refuse("calls something that is not a global");
        PickleNode* node = make(PickleKind::Reduce);
        node->items = {callable, arguments, nullptr};
        return push(node);
    }
    bool build() {
        PickleNode* state = pop();
        PickleNode* target = state ? top() : nullptr;
        if (target == nullptr) return false;
        if (target->kind != PickleKind::Reduce) return refuse("sets the state of a plain value");
        target->items[2] = state;
        return true;
    }
    bool pushGlobal(std::string name) {
        if (std::find(m_tree.globals.begin(), m_tree.globals.end(), name) == m_tree.globals.end())
            m_tree.globals.push_back(name);
        return pushText(name, PickleKind::Global);
    }
    bool global() {
        const auto module = m_cursor.line();
        const auto name = module ? m_cursor.line() : std::nullopt;
        return name && pushGlobal(std::string(*module) + " " + std::string(*name));
    }
    bool stackGlobal() {
        PickleNode* name = pop();
        PickleNode* module = name ? pop() : nullptr;
        if (module == nullptr) return false;
        if (module->kind != PickleKind::Text || name->kind != PickleKind::Text)
            return refuse("the names are not strings");
        return pushGlobal(module->text() + " " + name->text());
    }
    bool memoize(std::optional<uint64_t> slot) {
        PickleNode* node = slot ? top() : nullptr;
        if (node == nullptr) return false;
        // Real files number the memo densely; a lone high slot would only cost memory.
        if (*slot > m_memo.size() + kMaxStack || *slot > kMaxStack)
            return refuse("memo slot " + std::to_string(*slot) + " is out of range");
        m_memo[*slot] = node;
        return true;
    }
    bool recall(std::optional<uint64_t> slot) {
        if (!slot) return false;
        const auto found = m_memo.find(*slot);
        return found != m_memo.end() ? push(found->second) : refuse("memo slot " + std::to_string(*slot) + " is empty");
    }
    bool longInteger() {
        const auto bytes = counted<uint8_t>();
        if (!bytes) return false;
        if (bytes->size() > 8) return refuse("an integer of more than 64 bits");
        uint64_t value = 0;
        for (size_t i = bytes->size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>((*bytes)[i]);
        const size_t bits = bytes->size() * 8;
        if (bits > 0 && bits < 64 && (value >> (bits - 1) & 1)) value |= ~uint64_t{0} << bits;
        return pushInteger(static_cast<int64_t>(value));
    }
    bool real() {
        const auto bits = m_cursor.read<uint64_t>();
        if (!bits) return false;
        PickleNode* node = make(PickleKind::Real);
        node->value = std::bit_cast<double>(__builtin_bswap64(*bits));  // the one big-endian operand
        return push(node);
    }
    bool persistent() {
        const PickleNode* id = pop();
        if (id == nullptr) return false;
        PickleNode* node = make(PickleKind::Persistent);
        node->items = {id};
        return push(node);
    }
    bool protocol() {
        const auto version = m_cursor.read<uint8_t>();
        if (!version) return false;
        return (*version >= 2 && *version <= 5) ||
               refuse("protocol " + std::to_string(*version) + " (2 to 5 are read)");
    }
    bool stop() {
        m_tree.root = pop();
        m_done = true;
        return m_tree.root != nullptr;
    }

    bool step() {
        switch (m_opcode) {
            case 0x80: return protocol();
            case 0x95: return m_cursor.read<uint64_t>().has_value();  // FRAME: only a hint for buffering
            case 'c': return global();
            case 0x93: return stackGlobal();
            case 'R':
            case 0x81: return reduce();
            case 'b': return build();
            case '(': m_marks.push_back(m_stack.size()); return m_marks.size() <= kMaxStack;
            case 't': return pushTuple(popToMark());
            case ')': return pushTuple(size_t{0});
            case 0x85: return pushTuple(size_t{1});
            case 0x86: return pushTuple(size_t{2});
            case 0x87: return pushTuple(size_t{3});
            case ']': return push(make(PickleKind::List));
            case 'a': return extendBy(1, PickleKind::List);
            case 'e': return extend(popToMark(), PickleKind::List);
            case '}': return push(make(PickleKind::Dict));
            case 's': return extendBy(2, PickleKind::Dict);
            case 'u': return extend(popToMark(), PickleKind::Dict);
            case 0x8F: return push(make(PickleKind::Set));
            case 0x90: return extend(popToMark(), PickleKind::Set);
            case 'X': return pushText(counted<uint32_t>());
            case 0x8C: return pushText(counted<uint8_t>());
            case 0x8D: return pushText(counted<uint64_t>());
            case 'U': return pushText(counted<uint8_t>());
            case 'B': return pushText(counted<uint32_t>(), PickleKind::Bytes);
            case 'C': return pushText(counted<uint8_t>(), PickleKind::Bytes);
            case 'q': return memoize(m_cursor.read<uint8_t>());
            case 'r': return memoize(m_cursor.read<uint32_t>());
            case 0x94: return memoize(m_memo.size());
            case 'h': return recall(m_cursor.read<uint8_t>());
            case 'j': return recall(m_cursor.read<uint32_t>());
            case 'K': return pushInteger(m_cursor.read<uint8_t>());
            case 'M': return pushInteger(m_cursor.read<uint16_t>());
            case 'J': return pushInteger(m_cursor.read<int32_t>());
            case 0x8A: return longInteger();
            case 'G': return real();
            case 'N': return push(make(PickleKind::None));
            case 0x88: return pushInteger(1, PickleKind::Bool);
            case 0x89: return pushInteger(0, PickleKind::Bool);
            case 'Q': return persistent();
            case '.': return stop();
            default: return refuse("unknown opcode");
        }
    }

    ByteCursor m_cursor;
    const std::string& m_where;
    PickleTree m_tree;
    std::vector<PickleNode*> m_stack;
    std::vector<size_t> m_marks;
    std::unordered_map<uint64_t, PickleNode*> m_memo;
    std::optional<Error> m_error;
    size_t m_items = 0, m_opcodeAt = 0;
    uint8_t m_opcode = 0;
    bool m_done = false;
};

}  // namespace

Result<PickleTree> parsePickle(std::span<const std::byte> bytes, const std::string& where) {
    return PickleMachine(bytes, where).run();
}

}  // namespace cutaway
