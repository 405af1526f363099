#include "engine/ops/op_registry.h"

#include <deque>
#include <mutex>

#include "engine/ops/executorch.h"
#include "engine/ops/operator_definition.h"
#include "engine/ops/out_forms.h"
#include "engine/support/check.h"

namespace cutaway {

std::span<const OpDef> distanceOps();
std::span<const OpDef> groupedGemmOps();
std::span<const OpDef> resampleBackwardOps();
std::span<const OpDef> foreachOps();
std::span<const OpDef> collectiveOps();
std::span<const OpDef> linalgSolveOps();
std::span<const OpDef> linalgCholeskyOps();
std::span<const OpDef> linalgSpectralOps();
std::span<const OpDef> linalgCompositeOps();
std::span<const OpDef> spectralOps();
std::span<const OpDef> pointwiseNameOps();
std::span<const OpDef> layerNameOps();
std::span<const OpDef> olderNameOps();
std::span<const OpDef> directionOps();
std::span<const OpDef> spectralCompositeOps();
std::span<const OpDef> specialFunctionOps();
std::span<const OpDef> antialiasedOps();
std::span<const OpDef> histogramOps();
std::span<const OpDef> affineGridOps();
std::span<const OpDef> indexDimOps();
std::span<const OpDef> splitOps();
std::span<const OpDef> whereOps();
std::span<const OpDef> linalgNormOps();
std::span<const OpDef> gemmNarrowOps();
std::span<const OpDef> quantizedLinearOps();
std::span<const OpDef> quantizedConvOps();
std::span<const OpDef> quantizedFunctionOps();
std::span<const OpDef> fakeQuantizeLearnableOps();
std::span<const OpDef> logarithmOps();
std::span<const OpDef> roundingOps();
std::span<const OpDef> reorderOps();
std::span<const OpDef> dualOps();
std::span<const OpDef> vmapOps();
std::span<const OpDef> synonymOps();
std::span<const OpDef> primOps();
std::span<const OpDef> onnxOps();
std::span<const OpDef> hashOps();
std::span<const OpDef> linalgPolarOps();
std::span<const OpDef> torchaudioOps();
std::span<const OpDef> fakeQuantizeObservedOps();
std::span<const OpDef> statisticsOps();
std::span<const OpDef> weightNormOps();
std::span<const OpDef> batchNormNameOps();
std::span<const OpDef> viewCopyOps();
std::span<const OpDef> differenceOps();
std::span<const OpDef> outFormOps();
std::span<const OpDef> torchvisionOps();
std::span<const OpDef> torchvisionRegionOps();
std::span<const OpDef> torchaoOps();
std::span<const OpDef> sparseOps();
std::span<const OpDef> kernelNamesOps();
std::span<const OpDef> executorchOps();
std::span<const OpDef> fractionalPoolOps();
std::span<const OpDef> specialBesselOps();
std::span<const OpDef> specialPolynomialOps();
std::span<const OpDef> transformerOps();
std::span<const OpDef> ctcOps();
std::span<const OpDef> linalgSymmetricOps();
std::span<const OpDef> powerOps();
std::span<const OpDef> varianceOps();
std::span<const OpDef> segmentOps();
std::span<const OpDef> fusedOptimizerOps();

/// In-place forms whose names do not follow from the functional ones.
constexpr std::pair<std::string_view, std::string_view> kInplaceNames[] = {
    {"aten.bernoulli.p",
     "aten.bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)"},
    {"aten.pow.Tensor_Scalar", "aten.pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)"},
    {"aten.pow.Tensor_Tensor", "aten.pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)"},
    {"aten.float_power.Tensor_Scalar", "aten.float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)"},
    {"aten.float_power.Tensor_Tensor", "aten.float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)"},
    {"aten.floor_divide.default", "aten.floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"},
    {"aten.ldexp.Tensor", "aten.ldexp_.default(Tensor(a!) self, Tensor other) -> Tensor(a!)"},
    {"aten.transpose.int", "aten.transpose_.default(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)"},
    {"aten.normal_functional.default",
     "aten.normal_.default(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)"},
};

class OpRegistry {
  public:
    static OpRegistry& instance() {
        static OpRegistry registry;
        return registry;
    }

    const Op* find(std::string_view name) {
        name = withoutDialect(name);
        if (const auto text = textOfDialect(name)) return ofText(*text);
        auto found = m_known.find(name);
        if (found != m_known.end()) return found->second;
        const Op* form = outForm(name);
        return form != nullptr ? form : definedAs(name);
    }

    bool hasRow(std::string_view name) { return m_known.contains(name) || outForm(name) != nullptr; }

    const Op& define(OperatorDefinition definition) {
        std::lock_guard lock(m_mutex);
        const Op*& made = m_ofDefinition[definition.text];
        if (made != nullptr) return *made;
        OpDef& def = m_twinDefs.emplace_back();
        Op& op = m_opaqueOps.emplace_back();
        op.m_schema = std::make_unique<const Schema>(std::move(definition.schema));
        op.m_name = op.m_schema->name;
        op.m_def = &def;
        def.schema = op.m_name;
        def.infer = inferExpanded;
        def.eval = evalExpanded;
        def.expand = Expand::Composite;
        def.decompose = [](Decomposition& d) -> Values { return definitionOf(d.op())->expand(d); };
        m_definitions.emplace(&op, std::move(definition));
        made = &op;
        return op;
    }
    const OperatorDefinition* definition(const Op& op) {
        std::lock_guard lock(m_mutex);
        const auto found = m_definitions.find(&op);
        return found == m_definitions.end() ? nullptr : &found->second;
    }
    void setDefined(DefinedBy by, std::span<const Op* const> ops) {
        std::lock_guard lock(m_mutex);
        auto& named = m_defined[static_cast<size_t>(by)];
        named.clear();
        for (const Op* op : ops) named.emplace(op->name(), op);
    }

    const Op& findOrMakeOpaque(std::string_view name, Op::Style style) {
        if (style == Op::Style::Function)
            if (const Op* known = find(name)) return *known;
        name = withoutDialect(name);
        std::lock_guard lock(m_mutex);
        auto& byName = m_opaque[static_cast<size_t>(style)];
        if (auto found = byName.find(name); found != byName.end()) return *found->second;
        Op& op = m_opaqueOps.emplace_back();
        op.m_name = std::string(name);
        op.m_style = style;
        op.m_mutates = looksMutating(name);
        byName.emplace(op.m_name, &op);
        return op;
    }

    std::vector<const Op*> definedBy(DefinedBy by) {
        std::lock_guard lock(m_mutex);
        std::vector<const Op*> out;
        for (const auto& [name, op] : m_defined[static_cast<size_t>(by)]) out.push_back(op);
        return out;
    }

    std::span<const Op* const> all() const { return m_all; }

  private:
    OpRegistry() {
        const std::span<const OpDef> families[] = {
            // elementwise, factories, reductions, random
            pointwiseOps(), whereOps(), directionOps(), pointwiseUnaryOps(), roundingOps(), powerOps(),
            pointwiseSpecialOps(), logarithmOps(), specialFunctionOps(), specialBesselOps(), specialPolynomialOps(),
            compareOps(), castOps(), activationOps(), activationBackwardOps(), createOps(), reduceOps(), varianceOps(),
            reduceCompositeOps(), extremeOps(), scanOps(), sortOps(), histogramOps(), softmaxOps(), normOps(),
            normBackwardOps(), groupNormOps(), rmsNormOps(), lossOps(), classLossOps(), ctcOps(), lossCompositeOps(),
            randomOps(), distributionOps(), gammaDrawOps(), pointwiseNameOps(), synonymOps(), primOps(), layerNameOps(),
            olderNameOps(), weightNormOps(), statisticsOps(), batchNormNameOps(), differenceOps(), outFormOps(),
            // views and data movement
            viewOps(), permuteOps(), sliceOps(), splitOps(), viewScatterOps(), viewCopyOps(), movementOps(),
            reorderOps(), padOps(), joinOps(), rearrangeOps(), repeatOps(), rangeOps(), reinterpretOps(), mutatingOps(),
            // indexing
            gatherOps(), indexOps(), indexDimOps(), scatterOps(), bagOps(), searchOps(), maskedIndexOps(),
            dataDependentOps(), segmentOps(),
            // products, convolutions, windows, attention
            gemmOps(), gemmCompositeOps(), gemmShorthandOps(), gemmNarrowOps(), groupedGemmOps(), einsumOps(),
            quantizeOps(), quantizeParameterOps(), fakeQuantizeLearnableOps(), fakeQuantizeObservedOps(),
            quantizedLinearOps(), quantizedConvOps(), quantizedFunctionOps(), convOps(), poolOps(), averagePoolOps(),
            adaptivePoolOps(), fractionalPoolOps(), resampleOps(), resampleBackwardOps(), antialiasedOps(),
            affineGridOps(), gridSampleOps(), torchvisionOps(), torchvisionRegionOps(), torchaoOps(), sparseOps(),
            kernelNamesOps(), executorchOps(), torchaudioOps(), onnxOps(), distanceOps(), recurrentOps(),
            attentionOps(), transformerOps(), linalgSolveOps(), linalgCholeskyOps(), linalgSpectralOps(),
            linalgCompositeOps(), linalgSymmetricOps(), linalgNormOps(), linalgPolarOps(), hashOps(), spectralOps(),
            spectralCompositeOps(), symbolicOps(), assertOps(), foreachOps(), fusedOptimizerOps(), collectiveOps(),
            dualOps(), vmapOps(),
            // what freezing makes for libraries
            mkldnnLinearOps(), mkldnnConvOps()};
        for (const auto& family : families)
            for (const OpDef& def : family) add(def);
        const size_t rows = m_ops.size();
        for (size_t i = 0; i < rows; ++i)
            if (m_ops[i].is(Tag::Inplace)) addInplaceTwin(m_ops[i]);
        for (const Op& op : m_ops) m_all.push_back(&op);
    }

    void add(const OpDef& def) {
        auto schema = parseSchema(def.schema);
        if (!schema) throw InternalError(schema.error().text());
        Op& op = m_ops.emplace_back();
        op.m_name = schema->name;
        op.m_def = &def;
        op.m_mutates = schema->mutates();
        op.m_schema = std::make_unique<const Schema>(std::move(*schema));
        const bool fresh = m_known.emplace(op.m_name, &op).second;
        CT_CHECK(fresh, "each op has one row");
    }

    /// aten.add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!), computed by aten.add.Tensor and written back. Its own
    /// row only keeps the tags; kernels and shape come from the functional row (see interpret and functionalize).
    void addInplaceTwin(const Op& base) {
        Schema schema = *base.schema();
        const std::string name = schema.name;
        const auto packetEnd = name.find('.', name.find('.') + 1);
        const auto named = std::find_if(std::begin(kInplaceNames), std::end(kInplaceNames),
                                        [&](const auto& row) { return row.first == name; });
        if (named != std::end(kInplaceNames)) {
            schema = *parseSchema(named->second);
        } else {
            schema.name = std::string(name.substr(0, packetEnd)) + "_" + std::string(name.substr(packetEnd));
            // The compiler's own name: ATen has no such operator.
            if (name == "aten._unsafe_index_put.default") schema.name = "prims._unsafe_index_put_.default";
            schema.params[0].alias = 'a';
            schema.params[0].mutated = true;
            // Of lists, only the coalesced collectives give back what they wrote.
            const bool list = schema.params[0].list;
            if (list && name.starts_with("aten._foreach_")) schema.returns.clear();
            else schema.returns = {Return{ParamKind::Tensor, list, 'a', true}};
        }
        OpDef& def = m_twinDefs.emplace_back();
        def.schema = base.def()->schema;
        def.tags = Tag::Impure;
        def.infer = [](const InferContext& c) -> Result<ValueType> { return inferInplace(c); };
        if (base.def()->expand == Expand::Composite &&
            !schema.params[0].list) {  // PyTorch expands both before it makes programs functional
            def.expand = Expand::Composite;
            def.decompose = decomposeInplace;
        }
        Op& op = m_ops.emplace_back();
        op.m_name = schema.name;
        op.m_def = &def;
        op.m_schema = std::make_unique<const Schema>(std::move(schema));
        op.m_functional = &base;
        op.m_mutates = true;
        m_known.emplace(op.m_name, &op);
    }

    const Op* definedAs(std::string_view name) {
        std::lock_guard lock(m_mutex);
        for (const auto& named : m_defined)
            if (const auto found = named.find(name); found != named.end()) return found->second;
        return nullptr;
    }

    /// By the name with underscores in place of its dots.
    const Op* ofText(std::string_view text) {
        static const std::map<std::string, const Op*, std::less<>> all = [this] {
            std::map<std::string, const Op*, std::less<>> ops;
            for (const Op* op : m_all) {
                std::string name = op->name();
                std::replace(name.begin(), name.end(), '.', '_');
                ops.emplace(std::move(name), op);
            }
            return ops;
        }();
        const auto found = all.find(text);
        return found == all.end() ? nullptr : found->second;
    }

    /// A call that writes into tensors it is given, made when it is first asked for: there are hundreds.
    const Op* outForm(std::string_view name) {
        const auto form = outFormOf(name, [](std::string_view of) -> const Op* {
            const auto& known = instance().m_known;
            const auto found = known.find(of);
            return found == known.end() ? nullptr : found->second;
        });
        if (!form) return nullptr;
        std::lock_guard lock(m_mutex);
        if (const auto made = m_outForms.find(name); made != m_outForms.end()) return made->second;
        OpDef& def = m_twinDefs.emplace_back(outDef(*form));
        Op& op = m_opaqueOps.emplace_back();
        op.m_name = std::string(name);
        op.m_def = &def;
        op.m_mutates = true;
        op.m_schema = std::make_unique<const Schema>(outSchema(name, *form));
        m_outForms.emplace(op.m_name, &op);
        return &op;
    }

    static Result<ValueType> inferInplace(const InferContext& c);
    static Values decomposeInplace(Decomposition& d);

    /// Whether a name without a schema counts as one that writes (spec MR-2): a trailing underscore, alone or before
    /// the overload, or one of the words set, enter, exit and seed between underscores (_set_grad_enabled,
    /// manual_seed). And Python's x += y and x[i] = y, which PyTorch forgets.
    static bool looksMutating(std::string_view full) {
        for (size_t i = 1; i < full.size(); ++i)
            if (full[i] == '_' && full[i - 1] != '_' && (i + 1 == full.size() || full[i + 1] == '.')) return true;
        const std::string_view name = full.substr(full.rfind('.') + 1);
        for (const std::string_view word : {"set", "enter", "exit", "seed"})
            for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
                const size_t end = at + word.size();
                const bool begins = at == 0 || (name[at - 1] == '_' && !(at > 1 && name[at - 2] == '_'));
                const bool ends =
                    end == name.size() || (name[end] == '_' && !(end + 1 < name.size() && name[end + 1] == '_'));
                if (begins && ends) return true;
            }
        if (!full.starts_with("operator.")) return false;
        for (const std::string_view one : {"setitem", "delitem", "iadd", "isub", "imul", "itruediv", "ifloordiv",
                                           "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift", "imatmul"})
            if (name == one) return true;
        return false;
    }

    std::deque<Op> m_ops, m_opaqueOps;
    std::deque<OpDef> m_twinDefs;
    std::map<std::string, const Op*, std::less<>> m_known;
    std::map<std::string, const Op*, std::less<>> m_outForms, m_opaque[3];
    std::map<std::string, const Op*, std::less<>> m_ofDefinition;  // by the definition's text
    std::map<std::string, const Op*, std::less<>> m_defined[2];    // by DefinedBy
    std::map<const Op*, OperatorDefinition> m_definitions;         // looked up, never iterated
    std::vector<const Op*> m_all;
    std::mutex m_mutex;
};

}  // namespace cutaway

#include "engine/ir/infer.h"
#include "engine/ops/alias.h"
#include "engine/ops/build.h"

namespace cutaway {

/// The functional form's expansion, and its result written over the operand.
Values OpRegistry::decomposeInplace(Decomposition& d) {
    const Values values = d.op().functional()->def()->decompose(d);
    if (!values.handled() || d.builder().error()) return values;
    const Value self = d.in(size_t{0}), fresh = values.values()[0];
    if (!fresh || fresh.node() == self.node()) return self;
    return d.call("aten.copy_.default", {self, fresh});
}

namespace {

/// Whether a result of dtype `from` may be written to a tensor of dtype `to`: nothing may be lost but digits.
bool canBeWrittenTo(DType to, DType from) {
    if (isComplex(from)) return isComplex(to);
    if (isFloating(from)) return isFloating(to) || isComplex(to);
    return from == DType::Bool || to != DType::Bool;
}
/// Calls that PyTorch lets write to an expanded tensor: some write one number everywhere, of the others it warns. And
/// copy_ into an input, by which functionalization writes their results back; it refuses a program's own, and the
/// interpreter refuses values that differ.
bool mayWriteExpanded(const Op& base, const Node* target) {
    if (base.baseName() == "copy") return target != nullptr && target->isPlaceholder();
    constexpr std::string_view kNames[] = {"zero", "fill", "fill_diagonal", "masked_fill", "index_fill",   "index_put",
                                           "tril", "triu", "threshold",     "baddbmm",     "_foreach_zero"};
    return std::find(std::begin(kNames), std::end(kNames), base.baseName()) != std::end(kNames);
}
/// Why a result cannot be written to the tensor; empty if it can.
std::string whyNotWritten(const Op& base, const Node* target, const TensorType& to, const TensorType& result) {
    if (!(result.sizes == to.sizes)) return "the result does not have the shape of the tensor it is written to";
    if (!canBeWrittenTo(to.dtype, result.dtype))
        return "the result is " + std::string(info(result.dtype).abbreviation) + ", which a tensor of " +
               std::string(info(to.dtype).abbreviation) + " cannot hold";
    if (isExpanded(to) && !mayWriteExpanded(base, target))
        return "several elements of the tensor it is written to are one place in memory; clone it first";
    return {};
}

}  // namespace

Result<ValueType> OpRegistry::inferInplace(const InferContext& c) {
    const Op& base = *c.op().functional();
    std::vector<Argument> args;
    for (size_t i = 0; i < c.count(); ++i) args.push_back(c.arg(i));
    CT_TRY(ValueType result, inferCall(base, args));
    if (c.op().schema()->params[0].list) {
        CT_TRY(const std::vector<TensorType> written, c.tensors(c.op().schema()->params[0].name));
        const TupleType* computed = result.tuple();
        for (size_t i = 0; computed && i < std::min(written.size(), computed->size()); ++i)
            if (const std::string why = whyNotWritten(base, nullptr, written[i], *(*computed)[i].tensor());
                !why.empty())
                return c.fail(why);
        if (c.op().schema()->returns.empty()) return ValueType();
        return ValueType(TupleType(written.begin(), written.end()));
    }
    CT_TRY(TensorType self, c.tensor(size_t{0}));
    if (base.is(Tag::View)) return result;  // detach_, transpose_: new metadata over the same memory
    if (const TensorType* computed = result.tensor())
        if (const std::string why = whyNotWritten(base, c.arg(size_t{0}).node(), self, *computed); !why.empty())
            return c.fail(why);
    return ValueType(self);
}

const Op* findOp(std::string_view fullName) { return OpRegistry::instance().find(fullName); }
const Op& requireOp(std::string_view fullName) {
    const Op* op = findOp(fullName);
    if (op == nullptr) throw InternalError("no op table has a row for " + std::string(fullName));
    return *op;
}
const Op& findOrMakeOpaque(std::string_view fullName, Op::Style style) {
    return OpRegistry::instance().findOrMakeOpaque(fullName, style);
}
const Op& defineOperator(OperatorDefinition definition) { return OpRegistry::instance().define(std::move(definition)); }
const OperatorDefinition* definitionOf(const Op& op) {
    return op.isOpaque() || op.def()->expand != Expand::Composite ? nullptr : OpRegistry::instance().definition(op);
}
void setDefinedOperators(DefinedBy by, std::span<const Op* const> ops) { OpRegistry::instance().setDefined(by, ops); }
std::vector<const Op*> definedOperators(DefinedBy by) { return OpRegistry::instance().definedBy(by); }
bool isInTables(std::string_view fullName) { return OpRegistry::instance().hasRow(fullName); }
std::span<const Op* const> allOps() { return OpRegistry::instance().all(); }

}  // namespace cutaway
