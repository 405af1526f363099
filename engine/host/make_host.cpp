#include "engine/host/make_host.h"

#include "engine/host/slots.h"
#include "engine/interpret/higher_order.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/data_dependent.h"
#include "engine/ir/unbacked_sizes.h"
#include "engine/libraries/choose.h"
#include "engine/schedule/lowering_memo.h"
#include "engine/support/checked.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

class Maker {
  public:
    Maker(const HostSource& source, HostProgram& host) : m_source(&source), m_scheduled(source.program), m_host(&host) {
        m_function.name = source.name;
    }

    Result<HostFunction> run() {
        CT_TRY_VOID(addParameters());
        m_following = followingSizes(graph());
        findSegments();
        addValues();
        for (const ScheduledCall& call : m_scheduled->calls) CT_TRY_VOID(addStep(call));
        CT_TRY_VOID(addResults());
        CT_TRY_VOID(checkSymbols());
        addGuards();
        placeInSlots(m_function, m_lives, hintedSymbols(*m_scheduled->module), m_scheduled->target->alignment);
        return std::move(m_function);
    }

  private:
    static constexpr int64_t kNone = -1;
    const Module& module() const { return *m_scheduled->module; }
    const Graph& graph() const { return module().graph(); }

    // ---- inputs
    Result<void> addParameters() {
        const std::vector<Node*> placeholders = graph().placeholders();
        for (size_t i = 0; i < placeholders.size(); ++i) {
            const Node& node = *placeholders[i];
            const bool weight = i < module().inputs.size() && isWeight(module().inputs[i].kind);
            const auto [saved, shared] =
                i < m_source->savedInputs.size() ? m_source->savedInputs[i] : std::pair(kNone, kNone);
            const bool constant = (weight || shared >= 0) && !isWritten(node);
            m_function.parameters.push_back(
                {node.name(), node.type(), constant, weight && !constant, saved, constant ? shared : kNone});
            const TensorType* type = node.type().tensor();
            if (type != nullptr) {
                HostValue value{HostValue::Kind::Input, static_cast<int64_t>(i), 0, *type, node.name()};
                value.constant = constant;
                value.written = isWritten(node);
                m_number[{&node, 0}] = addValue(std::move(value));
            }
            addSymbols(node, i);
        }
        // Symbols that no input has as a size of its own are solved from sizes that hold them (2*s0 + 1).
        for (size_t i = 0; i < placeholders.size(); ++i)
            if (const TensorType* type = placeholders[i]->type().tensor())
                for (size_t d = 0; d < type->sizes.size(); ++d) addAffine(type->sizes[d], i, static_cast<int64_t>(d));
        return {};
    }
    static bool isWeight(InputSpec::Kind kind) {
        return kind == InputSpec::Kind::Parameter || kind == InputSpec::Kind::Buffer ||
               kind == InputSpec::Kind::Constant;
    }
    static bool isWritten(const Node& node) {
        return std::any_of(node.users().begin(), node.users().end(), [](const Node* user) {
            return user->isCall() && (user->op().mutates() || (user->is(Tag::View) && isWritten(*user)));
        });
    }
    bool isKnown(const std::string& symbol) const {
        return std::any_of(m_function.symbols.begin(), m_function.symbols.end(),
                           [&](const HostSymbol& hostSymbol) { return hostSymbol.name == symbol; });
    }
    /// Whether a step finds the symbol's value in data.
    bool isFound(const std::string& symbol) const {
        return std::any_of(m_function.steps.begin(), m_function.steps.end(), [&](const HostStep& step) {
            return std::any_of(step.found.begin(), step.found.end(),
                               [&](const HostStep::BoundSize& found) { return found.symbol == symbol; });
        });
    }
    /// Behind what a step finds, the sizes that follow from it, for which PyTorch has symbols of their own.
    void addFollowing(std::vector<HostStep::BoundSize>& found) const {
        if (found.empty()) return;
        std::set<std::string> known = knownSymbols();
        for (const HostStep::BoundSize& size : found) known.insert(size.symbol);
        for (const auto& [symbol, value] : m_following) {
            const std::vector<std::string> needed = symbolsOf(value);
            const bool follows = std::all_of(needed.begin(), needed.end(),
                                             [&](const std::string& each) { return known.contains(each); });
            if (follows && known.insert(symbol).second) found.push_back({symbol, 0, -1, value});
        }
    }
    void addSymbol(HostSymbol symbol) {
        if (const auto info = module().symbols.find(symbol.name); info != module().symbols.end()) {
            symbol.least = info->second.least();
            symbol.most = info->second.upper;
        }
        m_function.symbols.push_back(std::move(symbol));
    }
    void addSymbols(const Node& node, size_t parameter) {
        if (const SymType* sym = node.type().sym(); sym && sym->expr && sym->expr->kind == ExprKind::Symbol)
            if (!isKnown(sym->expr->name)) addSymbol({sym->expr->name, parameter});
        const TensorType* type = node.type().tensor();
        for (size_t d = 0; type != nullptr && d < type->sizes.size(); ++d)
            if (!type->sizes[d].isInt() && type->sizes[d].expr()->kind == ExprKind::Symbol &&
                !isKnown(type->sizes[d].expr()->name))
                addSymbol({type->sizes[d].expr()->name, parameter, static_cast<int64_t>(d)});
    }
    void addAffine(const SymInt& size, size_t parameter, int64_t dim) {
        if (size.isInt()) return;
        const std::vector<std::string> symbols = symbolsOf(size.expr());
        if (symbols.size() != 1 || isKnown(symbols[0])) return;
        const auto at = [&](int64_t value) { return *valueFor(size, {{symbols[0], value}}); };
        const int64_t offset = at(0), scale = at(1) - offset;
        if (scale != 0 && at(7) == 7 * scale + offset) addSymbol({symbols[0], parameter, dim, scale, offset});
    }

    // ---- memory
    int64_t addValue(HostValue value) {
        m_function.values.push_back(std::move(value));
        return static_cast<int64_t>(m_function.values.size()) - 1;
    }
    /// A call whose results have sizes from data ends a segment; also the last call, since views of them are returned.
    void findSegments() {
        m_function.segments = {0};
        for (size_t i = 0; i < m_scheduled->calls.size(); ++i)
            if (!foundBy(m_scheduled->calls[i]).empty()) m_function.segments.push_back(i + 1);
    }
    static std::vector<HostStep::BoundSize> foundBy(const ScheduledCall& call) {
        std::vector<HostStep::BoundSize> found;
        if (call.node == nullptr || !call.node->isCall()) return found;
        const auto note = [&](const Expr& expr, size_t result, int64_t dim) {
            if (expr && expr->kind == ExprKind::Symbol) found.push_back({expr->name, result, dim});
        };
        if (std::string number = unbackedNumber(*call.node); !number.empty())
            found.push_back({std::move(number), 0, -1});
        if (!sizeDependsOnData(call.node->op(), call.node->args())) return found;
        const auto tensor = [&](const ValueType& type, size_t result) {
            if (const TensorType* tensorType = type.tensor())
                for (size_t d = 0; d < tensorType->sizes.size(); ++d)
                    if (!tensorType->sizes[d].isInt())
                        note(tensorType->sizes[d].expr(), result, static_cast<int64_t>(d));
        };
        tensor(call.node->type(), 0);
        if (const TupleType* items = call.node->type().tuple())
            for (size_t r = 0; r < items->size(); ++r) tensor((*items)[r], r);
        return found;
    }
    void addValues() {
        for (const ScheduledValue& value : m_scheduled->values) {
            const Node& node = *value.key.node;
            if (value.kind == ScheduledValue::Kind::Input) continue;
            HostValue hostValue{HostValue::Kind::Slot, -1, 0, *tensorOf(value.key), node.name()};
            if (value.kind == ScheduledValue::Kind::Constant) {
                hostValue.kind = HostValue::Kind::Constant;
                hostValue.index = constantNumber(node);
                hostValue.constant = true;
                m_number[value.key] = addValue(std::move(hostValue));
                continue;
            }
            const ScheduledCall& call = m_scheduled->calls[static_cast<size_t>(value.definedBy)];
            if (call.kind == CallKind::Reference) hostValue.kind = HostValue::Kind::StepOwned;
            if (value.over >= 0) {
                hostValue.kind = HostValue::Kind::View;
                hostValue.index = m_number.at(m_scheduled->values[static_cast<size_t>(value.over)].key);
            }
            const bool placed = hostValue.kind == HostValue::Kind::Slot;
            const int64_t number = addValue(std::move(hostValue));
            m_number[value.key] = number;
            if (placed) m_lives.push_back({number, value.definedBy, value.memoryUntil});
        }
    }
    int64_t constantNumber(const Node& node) {
        auto& constants = m_host->constants;
        const std::string name = hostConstant(m_function.name, node.target());
        const auto found = std::find(constants.begin(), constants.end(), name);
        const auto place = found - constants.begin();
        if (found == constants.end()) constants.push_back(name);
        return place;
    }

    /// The number of a node's value: its own, or that of a view of its root.
    Result<int64_t> numberOf(const Node& node) {
        const ValueKey key = resolve(node);
        if (auto found = m_number.find(key); found != m_number.end()) return found->second;
        const ValueKey root = rootOf(node);
        const TensorType* type = node.type().tensor();
        auto base = m_number.find(root);
        if (type == nullptr || base == m_number.end())
            return unsupported("'" + node.name() + "' is passed on as a tuple, which compiled graphs cannot do",
                               node.name(), {"read its items by getitem"});
        // A view as another dtype counts its offset in elements of its own.
        const TensorType& whole = *tensorOf(root);
        const SymInt skipped = type->dtype == whole.dtype ? whole.offset
                                                          : floorDiv(whole.offset * SymInt(byteSize(whole.dtype)),
                                                                     SymInt(byteSize(type->dtype)));
        HostValue view{HostValue::Kind::View, base->second, type->offset - skipped, *type, node.name()};
        view.constant = m_function.values[static_cast<size_t>(base->second)].constant;
        const int64_t number = addValue(std::move(view));
        m_number[key] = number;
        return number;
    }

    // ---- steps
    Result<void> addStep(const ScheduledCall& call) {
        HostStep step;
        step.bytes = call.bytesRead + call.bytesWritten;
        step.spanned = call.bytesSpanned;
        step.flops = call.flops;
        if (call.kind == CallKind::Kernel) addKernel(call, step);
        else CT_TRY_VOID(addCall(call, step));
        if (faultsAsked()) nameOps(call, step);
        m_function.steps.push_back(std::move(step));
        return {};
    }
    void addKernel(const ScheduledCall& call, HostStep& step) {
        step.kind = HostStepKind::Kernel;
        step.kernel = m_source->kernels.at(call.kernel);
        const HostKernel& kernel = m_host->kernels[step.kernel];
        nameNodes(call, kernel, step);
        for (const ValueKey& key : call.bindings) step.buffers.push_back(m_number.at(key));
        const int at = static_cast<int>(m_function.steps.size());
        for (const Workspace& space : kernel.workspace) {
            const int64_t number =
                addValue({HostValue::Kind::Slot, -1, 0, TensorType::contiguous(space.dtype, {space.count}),
                          "workspace of " + kernel.name});
            m_lives.push_back({number, at, at});
            step.buffers.push_back(number);
        }
    }
    void nameOps(const ScheduledCall& call, HostStep& step) const {
        if (call.kind != CallKind::Kernel) step.ops = {call.node->op().name()};
        else
            for (const NodeId id : call.nodes)
                if (const Node* node = graph().find(id); node && node->isCall()) step.ops.push_back(node->op().name());
    }
    /// What an error says of a failed kernel: its nodes by the names that the user sees, and where its code is.
    void nameNodes(const ScheduledCall& call, const HostKernel& kernel, HostStep& step) const {
        std::vector<std::string> all, checking;
        for (const NodeId id : call.nodes) {
            const Node* node = graph().find(id);
            if (node == nullptr) continue;
            all.push_back(node->name());
            if (kernel.checks && probe(*node, *m_scheduled->target, *m_scheduled->memo).checks)
                checking.push_back(node->name());
        }
        step.node = named(all, kernel.name);
        step.checking = kernel.checks ? named(checking.empty() ? all : checking, kernel.name) : std::string();
    }
    /// "embedding, add (kernel0)".
    static std::string named(const std::vector<std::string>& nodes, const std::string& kernel) {
        constexpr size_t kShown = 6;
        std::string text;
        for (size_t i = 0; i < std::min(nodes.size(), kShown); ++i) text += (i > 0 ? ", " : "") + nodes[i];
        if (nodes.size() > kShown) text += " and " + std::to_string(nodes.size() - kShown) + " more";
        return text.empty() ? kernel : text + " (" + kernel + ")";
    }
    /// The process that has the library is started where the program runs.
    Result<void> addPlugin(const PluginLibrary& library) {
        const PluginLibrary* const known = pluginOf(*m_host, library.name);
        if (known != nullptr && !(*known == library))
            return unsupported("two versions of " + library.title + " in one program", library.name, {"compile again"});
        if (known == nullptr) m_host->plugins.push_back(library);
        m_host->pluginLimits = pluginLimits();
        return {};
    }
    Result<void> addCall(const ScheduledCall& call, HostStep& step) {
        const Node& node = *call.node;
        step.kind = call.kind == CallKind::Library    ? HostStepKind::Library
                    : isHigherOrder(node.op().name()) ? HostStepKind::Functions
                                                      : HostStepKind::Reference;
        step.op = node.op().name();
        const LibraryRow* const row =
            step.kind == HostStepKind::Reference ? finderOf(step.op, *m_scheduled->target) : call.library;
        if (row != nullptr) step.library = row->library.name;
        if (row != nullptr && row->library.plugin != nullptr) CT_TRY_VOID(addPlugin(*row->library.plugin));
        if (!step.library.empty())
            for (const Param& param : node.op().schema()->params) step.params.push_back(param.name);
        const bool rounds = call.library != nullptr && roundsToTf32(*call.library, node, *m_scheduled->target);
        const bool measures = row != nullptr && &row->library == &kCublasLt && m_scheduled->target->measuresProducts;
        if (measures) step.params.emplace_back(kMeasure);
        if (rounds) step.params.emplace_back(kAllowTf32);
        step.node = node.name();
        step.type = node.type();
        // Libraries of other devices say of an index that it is out of range as kernels do.
        const auto isIndex = [](const Param& param) { return param.name == "index" || param.name == "indices"; };
        const std::vector<Param>& params = node.op().schema()->params;
        if (row != nullptr && row->library.device != DeviceType::Cpu &&
            std::any_of(params.begin(), params.end(), isIndex))
            step.checking = node.name();
        step.found = foundBy(call);
        addFollowing(step.found);
        std::optional<Error> error;
        auto fail = [&](Error e) {
            if (!error) error = std::move(e);
        };
        for (const Argument& arg : node.args()) {
            const Argument plain = withoutNumberNodes(arg, node.name(), fail);
            step.args.push_back(plain.mapNodes([&](Node* operand) -> Node* {
                auto number = numberOf(*operand);
                if (!number) {
                    fail(std::move(number).error());
                    return operand;
                }
                step.operands.push_back(*number);
                return nameFor(*number);
            }));
        }
        if (error) return std::move(*error);
        for (const bool flag : {measures, rounds})
            if (flag) step.args.emplace_back(true);
        const size_t results = node.type().tuple() ? node.type().tuple()->size() : 1;
        for (size_t r = 0; r < results; ++r) {
            auto found = m_number.find({&node, r});
            step.results.push_back(found == m_number.end() ? -1 : found->second);
        }
        return {};
    }
    /// Nodes that stand for numbers become expressions.
    template <class Fail>
    Argument withoutNumberNodes(const Argument& arg, const std::string& where, Fail& fail) {
        const Node* node = arg.node();
        if (const auto* body = arg.get<SubgraphRef>(); body && m_source->functions.contains(body->name))
            return SubgraphRef{m_source->functions.at(body->name)};
        if (node != nullptr && node->type().sym()) {
            if (const SymType* sym = node->type().sym(); sym->expr) return sym->expr;
            fail(unsupported("a number computed at run time is passed to " + where, where,
                             {"run the graph on the interpreter"}));
            return arg;
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
            for (const Argument& item : list->items) fixed.items.push_back(withoutNumberNodes(item, where, fail));
            return fixed;
        }
        return arg;
    }
    Node* nameFor(int64_t number) {
        const auto [known, fresh] = m_names.try_emplace(number, nullptr);
        if (!fresh) return known->second;
        m_function.numbers.push_back(number);
        return known->second = &m_function.names->placeholder("v" + std::to_string(number),
                                                              m_function.values[static_cast<size_t>(number)].type);
    }

    Result<void> addResults() {
        for (const Argument& output : graph().outputs()) {
            if (output.isNone() || output.get<std::string>()) {
                m_function.results.push_back(-1);
                continue;
            }
            if (returnsNumber(output)) {
                m_function.results.push_back(-1);
                continue;
            }
            if (output.node() == nullptr || !output.node()->type().tensor())
                return unsupported("the graph returns something that is neither a tensor nor a size", "output",
                                   {"return tensors only, or run the graph on the interpreter"});
            CT_TRY(const int64_t number, numberOf(*output.node()));
            m_function.results.push_back(number);
        }
        return {};
    }

    bool returnsNumber(const Argument& output) {
        if (const auto literal = output.asInt()) {
            const DType dtype = output.get<bool>() ? DType::Bool : DType::I64;
            m_function.returnedNumbers.push_back({m_function.results.size(), dtype, *literal});
            return true;
        }
        if (const double* literal = output.get<double>()) {
            m_function.returnedNumbers.push_back({m_function.results.size(), DType::F64, 0, *literal});
            return true;
        }
        const SymType* type = output.node() ? output.node()->type().sym() : nullptr;
        if (type == nullptr || !type->expr) return false;
        for (const std::string& symbol : symbolsOf(type->expr))
            if (!isKnown(symbol) && !isFound(symbol)) return false;
        m_function.returnedNumbers.push_back({m_function.results.size(), type->dtype, SymInt(type->expr)});
        return true;
    }

    std::set<std::string> knownSymbols() const {
        std::set<std::string> known;
        for (const HostSymbol& symbol : m_function.symbols) known.insert(symbol.name);
        for (const HostStep& step : m_function.steps)
            for (const HostStep::BoundSize& found : step.found) known.insert(found.symbol);
        return known;
    }
    void addGuards() {
        const std::set<std::string> known = knownSymbols();
        if (known.empty()) return;
        for (SizeGuard& guard : sizeGuards(module())) {
            const std::vector<std::string> own = symbolsOf(guard.condition);
            if (std::includes(known.begin(), known.end(), own.begin(), own.end()))
                m_function.guards.push_back(std::move(guard));
        }
    }
    /// Every symbol is one of the inputs', or found before it is wanted.
    Result<void> checkSymbols() const {
        const std::set<std::string> known = knownSymbols();
        for (const HostValue& value : m_function.values) {
            SymDims all = value.type.sizes;
            all.insert(all.end(), value.type.strides.begin(), value.type.strides.end());
            all.push_back(value.offset);
            for (const SymInt& dim : all)
                for (const std::string& symbol : dim.isInt() ? std::vector<std::string>{} : symbolsOf(dim.expr()))
                    if (!known.contains(symbol))
                        return unsupported("the size " + dim.text() + " does not follow from the inputs", value.name,
                                           {"give concrete sizes, or make the symbol a size of an input"});
        }
        return {};
    }

    const HostSource* m_source;
    const ScheduledProgram* m_scheduled;
    HostProgram* m_host;
    HostFunction m_function;
    std::map<ValueKey, int64_t> m_number;
    std::vector<std::pair<std::string, Expr>> m_following;
    std::map<int64_t, Node*> m_names;
    std::vector<HostLife> m_lives;
};

}  // namespace

std::string hostConstant(const std::string& function, const std::string& target) {
    const size_t body = function.find('/');  // constants of "run" and "forward" keep the module's names
    if (body != std::string::npos) return function.substr(body + 1) + "/" + target;
    return function == kBackwardFunction ? function + "/" + target : target;
}

Result<HostFunction> makeHostFunction(const HostSource& source, HostProgram& program) {
    return withCheckedSizes({}, {}, [&] { return Maker(source, program).run(); });
}

}  // namespace cutaway
