#include "engine/runtime/cpu/plan.h"

#include "engine/interpret/interpret.h"
#include "engine/libraries/choose.h"
#include "engine/schedule/lowering.h"
#include "engine/support/checked.h"
#include "engine/support/fault_points.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

class Binder {
  public:
    Binder(const ScheduledProgram& program, const std::vector<PrintedKernel>& printed,
           const std::vector<std::string>& libraries, const std::vector<Tensor>& inputs, KnownArena* known)
        : m_program(&program), m_printed(&printed), m_libraries(&libraries), m_inputs(&inputs), m_known(known) {}

    Result<BoundProgram> run() {
        CT_TRY_VOID(bindInputs());
        CT_TRY_VOID(addValues());
        for (const ScheduledCall& call : m_program->calls) CT_TRY_VOID(addCall(call));
        CT_TRY_VOID(addOutputs());
        placeInArena();
        return std::move(m_bound);
    }

  private:
    const Graph& graph() const { return m_program->module->graph(); }

    /// What a kernel's vector loop does per nanosecond on one core.
    static constexpr int64_t kOperations = 2;
    static int64_t nanosecondsFor(int64_t computing, int64_t bytes) {
        return std::max(computing, bytes / kBytesPerNanosecond);
    }

    // ---- sizes
    Result<int64_t> number(const SymInt& value, const std::string& where) {
        if (auto known = value.asInt()) return *known;
        const Expr filled = substitute(value.expr(), [&](const std::string& name) {
            auto found = m_symbols.find(name);
            return found == m_symbols.end() ? Expr() : Expr::integer(found->second);
        });
        if (auto known = filled.asInt()) return *known;
        return unsupported("the size " + value.text() + " does not follow from the inputs", where,
                           {"give concrete sizes, or make the symbol a size of an input"});
    }
    Result<Dims> numbers(const SymDims& dims, const std::string& where) {
        Dims result;
        for (const SymInt& dim : dims) {
            CT_TRY(const int64_t value, number(dim, where));
            result.push_back(value);
        }
        return result;
    }
    Result<TensorType> filled(const TensorType& type, const std::string& where) {
        TensorType result = type;
        CT_TRY(const Dims sizes, numbers(type.sizes, where));
        CT_TRY(const Dims strides, numbers(type.strides, where));
        CT_TRY(const int64_t offset, number(type.offset, where));
        result.sizes = toSymDims(sizes);
        result.strides = toSymDims(strides);
        result.offset = offset;
        return result;
    }
    Result<ValueType> filled(const ValueType& type, const std::string& where) {
        if (const TensorType* tensor = type.tensor()) {
            CT_TRY(TensorType result, filled(*tensor, where));
            return ValueType(std::move(result));
        }
        if (const TupleType* items = type.tuple()) {
            TupleType result;
            for (const ValueType& item : *items) {
                CT_TRY(ValueType one, filled(item, where));
                result.push_back(std::move(one));
            }
            return ValueType(std::move(result));
        }
        return type;
    }

    // ---- inputs
    Result<void> bindInputs() {
        const std::vector<Node*> placeholders = graph().placeholders();
        if (placeholders.size() != m_inputs->size())
            return invalidInput("the graph has " + std::to_string(placeholders.size()) + " inputs, " +
                                std::to_string(m_inputs->size()) + " were given");
        for (size_t i = 0; i < placeholders.size(); ++i) CT_TRY_VOID(bindSymbols(*placeholders[i], (*m_inputs)[i]));
        for (size_t i = 0; i < placeholders.size(); ++i) CT_TRY_VOID(addInput(*placeholders[i], (*m_inputs)[i], i));
        return {};
    }
    Result<void> bindSymbols(const Node& node, const Tensor& tensor) {
        if (const SymType* sym = node.type().sym()) {
            if (tensor.defined() && sym->expr && sym->expr->kind == ExprKind::Symbol)
                m_symbols[sym->expr->name] = toInt(tensor.item());
            return {};
        }
        const TensorType* type = node.type().tensor();
        if (type == nullptr) return {};
        if (!tensor.defined()) return invalidInput("input '" + node.name() + "' has no value", node.name());
        if (tensor.dtype() != type->dtype || tensor.sizes().size() != type->sizes.size())
            return invalidInput("input '" + node.name() + "' must be " + type->text() + ", not " + describe(tensor),
                                node.name());
        for (size_t d = 0; d < type->sizes.size(); ++d)
            if (!type->sizes[d].isInt() && type->sizes[d].expr()->kind == ExprKind::Symbol)
                m_symbols.emplace(type->sizes[d].expr()->name, tensor.sizes()[d]);
        return {};
    }
    static std::string describe(const Tensor& tensor) {
        return TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text();
    }

    Result<void> addInput(const Node& node, const Tensor& tensor, size_t position) {
        const TensorType* type = node.type().tensor();
        if (type == nullptr) return {};
        CT_TRY(const TensorType concrete, filled(*type, node.name()));
        if (toInts(concrete.sizes) != tensor.sizes())
            return invalidInput("input '" + node.name() + "' must be " + concrete.text() + ", not " + describe(tensor),
                                node.name());
        const InputSpec::Kind kind = position < m_program->module->inputs.size()
                                         ? m_program->module->inputs[position].kind
                                         : InputSpec::Kind::UserInput;
        addGiven(
            node, tensor, concrete,
            kind == InputSpec::Kind::Parameter || kind == InputSpec::Kind::Buffer || kind == InputSpec::Kind::Constant);
        return {};
    }
    /// Kernels walk memory by the graph's strides, so the tensor is laid out that way.
    void addGiven(const Node& node, const Tensor& tensor, const TensorType& type, bool constant) {
        const Dims sizes = toInts(type.sizes), strides = toInts(type.strides);
        Tensor laid = tensor;
        if (tensor.strides() != strides && tensor.numel() > 0) {
            const auto storage = Storage::allocate(checkedBytes(type.dtype, extent(sizes, strides), sizes));
            laid = Tensor(storage, type.dtype, sizes, strides);
            copyInto(laid, tensor);
        }
        const bool written = isWritten(node);
        PlanValue value{PlanValue::Kind::Given,
                        static_cast<int64_t>(m_bound.given.size()),
                        0,
                        type.dtype,
                        sizes,
                        strides,
                        constant && !written,
                        written};
        m_bound.given.push_back(laid);
        m_number[{&node, 0}] = addValue(std::move(value));
    }
    static bool isWritten(const Node& node) {
        return std::any_of(node.users().begin(), node.users().end(), [](const Node* user) {
            return user->isCall() && (user->op().mutates() || (user->is(Tag::View) && isWritten(*user)));
        });
    }
    int64_t addValue(PlanValue value) {
        m_bound.plan.values.push_back(std::move(value));
        return static_cast<int64_t>(m_bound.plan.values.size()) - 1;
    }

    Result<void> addValues() {
        for (const ScheduledValue& value : m_program->values)
            if (value.kind != ScheduledValue::Kind::Input)
                CT_TRY_VOID(withCheckedSizes({}, value.key.node->name(), [&] { return addMemory(value); }));
        return {};
    }
    Result<void> addMemory(const ScheduledValue& value) {
        const Node& node = *value.key.node;
        CT_TRY(const TensorType type, filled(*tensorOf(value.key), node.name()));
        if (value.kind == ScheduledValue::Kind::Constant) {
            CT_TRY(const Tensor held, attributeOf(*m_program->module, node));
            addGiven(node, held, type, true);
            return {};
        }
        PlanValue plan{PlanValue::Kind::Arena, -1, 0, type.dtype, toInts(type.sizes), toInts(type.strides), false};
        const ScheduledCall& call = m_program->calls[static_cast<size_t>(value.definedBy)];
        if (call.kind == CallKind::Reference) plan.kind = PlanValue::Kind::Adopted;
        const size_t bytes = checkedBytes(type.dtype, extent(plan.sizes, plan.strides), plan.sizes);
        checkedBytes(type.dtype, numel(plan.sizes), plan.sizes);
        const int64_t number = addValue(std::move(plan));
        m_number[value.key] = number;
        if (call.kind != CallKind::Reference)
            m_blocks.push_back({number, {static_cast<int64_t>(bytes), value.definedBy, value.lastUse, 0}});
        return {};
    }
    /// Gives the blocks their offsets.
    int64_t planned(std::vector<MemoryBlock>& blocks) {
        if (m_known == nullptr) return planMemory(blocks);
        const std::lock_guard lock(m_known->turn);
        const auto same = [](const MemoryBlock& a, const MemoryBlock& b) {
            return a.bytes == b.bytes && a.begin == b.begin && a.end == b.end;
        };
        if (!std::equal(blocks.begin(), blocks.end(), m_known->blocks.begin(), m_known->blocks.end(), same)) {
            m_known->bytes = planMemory(blocks);
            m_known->blocks = blocks;
        }
        blocks = m_known->blocks;
        return m_known->bytes;
    }
    void placeInArena() {
        std::vector<MemoryBlock> blocks;
        for (const auto& [number, block] : m_blocks) blocks.push_back(block);
        m_bound.plan.arenaBytes = planned(blocks);
        for (size_t i = 0; i < blocks.size(); ++i)
            m_bound.plan.values[static_cast<size_t>(m_blocks[i].first)].offset = blocks[i].offset;
    }

    /// The number of a node's value: its own, or that of a view of its root.
    Result<int64_t> numberOf(const Node& node) {
        const ValueKey key = resolve(node);
        if (auto found = m_number.find(key); found != m_number.end()) return found->second;
        const ValueKey root = rootOf(node);
        const TensorType* type = node.type().tensor();
        auto base = m_number.find(root);
        if (type == nullptr || base == m_number.end())
            return unsupported("'" + node.name() + "' is passed on as a whole, which compiled graphs cannot do",
                               node.name(), {"read its items by getitem"});
        CT_TRY(const TensorType own, filled(*type, node.name()));
        CT_TRY(const TensorType from, filled(*tensorOf(root), node.name()));
        PlanValue view{PlanValue::Kind::View,
                       base->second,
                       own.offset.value() - from.offset.value(),
                       own.dtype,
                       toInts(own.sizes),
                       toInts(own.strides),
                       m_bound.plan.values[static_cast<size_t>(base->second)].constant};
        const int64_t number = addValue(std::move(view));
        m_number[key] = number;
        return number;
    }

    Result<void> addCall(const ScheduledCall& call) {
        PlanCall plan;
        plan.kind = call.kind;
        if (call.kind == CallKind::Kernel) {
            const Kernel& kernel = m_program->kernels[call.kernel].kernel;
            const PrintedKernel& printed = (*m_printed)[call.kernel];
            plan.function = kernel.name;
            nameNodes(call, plan);
            for (const ValueKey& key : call.bindings) plan.buffers.push_back(m_number.at(key));
            for (const std::string& size : kernel.sizes) {
                CT_TRY(const int64_t value, number(SymInt(Expr::symbol(size)), kernel.name));
                plan.sizes.push_back(value);
            }
            for (const PrintedKernel::Launch& launch : printed.launches) {
                CT_TRY(const int64_t range, number(launch.range, kernel.name));
                plan.launches.push_back(
                    {m_libraries->empty() ? "" : (*m_libraries)[call.kernel], launch.function, range});
            }
            // A kernel without outer loops runs once even if what it stores is empty; nothing may be stored then.
            int64_t written = 0;
            for (size_t i = 0; i < kernel.buffers.size(); ++i)
                if (kernel.buffers[i].written)
                    written += numel(m_bound.plan.values[static_cast<size_t>(plan.buffers[i])].sizes);
            if (written == 0) plan.launches.clear();
            CT_TRY_VOID(addWorkspace(printed, plan));
            plan.nanoseconds =
                nanosecondsFor(std::max(written, call.flops) / kOperations, call.bytesRead + call.bytesWritten);
        } else {
            CT_TRY_VOID(addArguments(*call.node, plan));
            plan.nanoseconds =
                nanosecondsFor(call.flops / kLibraryOperationsPerNanosecond, call.bytesRead + call.bytesWritten);
        }
        if (faultsAsked()) nameOps(call, plan);
        m_bound.plan.calls.push_back(std::move(plan));
        return {};
    }
    /// Memory that only this call uses.
    Result<void> addWorkspace(const PrintedKernel& printed, PlanCall& plan) {
        const int at = static_cast<int>(m_bound.plan.calls.size());
        for (const Workspace& space : printed.workspace) {
            CT_TRY(const int64_t count, number(space.count, plan.function));
            const int64_t value = addValue({PlanValue::Kind::Arena, -1, 0, space.dtype, {count}, {1}, false});
            m_blocks.push_back({value, {count * byteSize(space.dtype), at, at, 0}});
            plan.buffers.push_back(value);
        }
        return {};
    }
    void nameOps(const ScheduledCall& call, PlanCall& plan) const {
        if (call.kind != CallKind::Kernel) plan.ops = {call.node->op().name()};
        else
            for (const NodeId id : call.nodes)
                if (const Node* node = graph().find(id); node && node->isCall()) plan.ops.push_back(node->op().name());
    }
    /// What an error says of a failed kernel: its nodes by the names that the user sees, and where its code is.
    void nameNodes(const ScheduledCall& call, PlanCall& plan) const {
        std::vector<std::string> all, checking;
        const std::set<std::string>& helpers = (*m_printed)[call.kernel].helpers;
        const bool checks = helpers.contains("checked_index") || helpers.contains("intdiv");
        for (const NodeId id : call.nodes) {
            const Node* node = graph().find(id);
            if (node == nullptr) continue;
            all.push_back(node->name());
            if (checks && probe(*node).checks) checking.push_back(node->name());
        }
        plan.node = named(all, plan.function);
        plan.checking = checks ? named(checking.empty() ? all : checking, plan.function) : std::string();
    }
    /// "embedding, add (kernel0)".
    static std::string named(const std::vector<std::string>& nodes, const std::string& kernel) {
        constexpr size_t kShown = 6;
        std::string text;
        for (size_t i = 0; i < std::min(nodes.size(), kShown); ++i) text += (i > 0 ? ", " : "") + nodes[i];
        if (nodes.size() > kShown) text += " and " + std::to_string(nodes.size() - kShown) + " more";
        return text.empty() ? kernel : text + " (" + kernel + ")";
    }
    Result<void> addArguments(const Node& node, PlanCall& plan) {
        plan.function = node.op().name();
        if (const LibraryRow* const row = libraryRowOf(node); row && plan.kind == CallKind::Library)
            plan.library = row->library;
        plan.node = node.name();
        CT_TRY(plan.type, filled(node.type(), node.name()));
        std::optional<Error> error;
        auto fail = [&](Error e) {
            if (!error) error = std::move(e);
        };
        for (const Argument& arg : node.args()) {
            const Argument fixed = withoutSymbols(arg, node.name(), fail);
            plan.args.push_back(fixed.mapNodes([&](Node* operand) -> Node* {
                auto number = numberOf(*operand);
                if (!number) return fail(std::move(number).error()), operand;
                return nameFor(*number);
            }));
        }
        if (error) return std::move(*error);
        const size_t results = node.type().tuple() ? node.type().tuple()->size() : 1;
        for (size_t r = 0; r < results; ++r) {
            auto found = m_number.find({&node, r});
            plan.results.push_back(found == m_number.end() ? -1 : found->second);
        }
        return {};
    }
    /// Size expressions and nodes that stand for numbers become numbers.
    template <class Fail>
    Argument withoutSymbols(const Argument& arg, const std::string& where, Fail& fail) {
        const Node* node = arg.node();
        if (arg.get<Expr>() || (node != nullptr && node->type().sym())) {
            const auto size = symIntOf(arg);
            auto value =
                size ? number(*size, where)
                     : Result<int64_t>(unsupported("a number computed at run time is passed to " + where, where));
            if (!value) return fail(std::move(value).error()), arg;
            return *value;
        }
        const bool carried = arg.isNone() || node != nullptr || arg.isNumber() || arg.list() ||
                             arg.get<std::string>() || arg.get<DType>() || arg.get<Device>() || arg.get<Layout>() ||
                             arg.get<MemoryFormat>();
        if (!carried) {
            fail(unsupported("compiled graphs cannot pass such an argument to " + where, where,
                             {"run the graph on the interpreter"}));
            return arg;
        }
        if (const auto* list = arg.get<ArgumentList>()) {
            ArgumentList fixed{{}, list->tuple};
            for (const Argument& item : list->items) fixed.items.push_back(withoutSymbols(item, where, fail));
            return fixed;
        }
        return arg;
    }
    Node* nameFor(int64_t number) {
        const auto [known, fresh] = m_names.try_emplace(number, nullptr);
        if (!fresh) return known->second;
        Plan& plan = m_bound.plan;
        const PlanValue& value = plan.values[static_cast<size_t>(number)];
        TensorType type = TensorType::contiguous(value.dtype, toSymDims(value.sizes));
        type.strides = toSymDims(value.strides);
        plan.numbers.push_back(number);
        return known->second = &plan.names->placeholder("v" + std::to_string(number), type);
    }

    Result<void> addOutputs() {
        for (const Argument& output : graph().outputs()) {
            if (output.isNone()) {
                m_bound.plan.outputs.push_back(-1);
                continue;
            }
            if (output.node() == nullptr || !output.node()->type().tensor())
                return unsupported("the graph returns something that is not a tensor", "output",
                                   {"return tensors only, or run the graph on the interpreter"});
            CT_TRY(const int64_t number, numberOf(*output.node()));
            m_bound.plan.outputs.push_back(number);
        }
        return {};
    }

    const ScheduledProgram* m_program;
    const std::vector<PrintedKernel>* m_printed;
    const std::vector<std::string>* m_libraries;
    const std::vector<Tensor>* m_inputs;
    KnownArena* m_known;
    BoundProgram m_bound;
    std::map<std::string, int64_t> m_symbols;
    std::map<ValueKey, int64_t> m_number;
    std::map<int64_t, Node*> m_names;
    std::vector<std::pair<int64_t, MemoryBlock>> m_blocks;
};

}  // namespace

Result<BoundProgram> bindProgram(const ScheduledProgram& program, const std::vector<PrintedKernel>& printed,
                                 const std::vector<std::string>& libraries, const std::vector<Tensor>& inputs,
                                 KnownArena* known) {
    return withCheckedSizes({}, {}, [&] { return Binder(program, printed, libraries, inputs, known).run(); });
}

}  // namespace cutaway
