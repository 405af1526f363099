#include "engine/formats/repro_inputs.h"

#include <charconv>

#include "engine/expr/expr_parse.h"
#include "engine/text/syntax.h"

namespace cutaway {
namespace {

using fxtext::kNoSyntax;
using fxtext::Statement;
using fxtext::StatementKind;
using fxtext::SyntaxId;
using fxtext::SyntaxKind;
using fxtext::SyntaxNode;
using fxtext::SyntaxTree;

constexpr int64_t kMaxExact = 4096;

std::string_view trimmedInput(std::string_view line) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// A call's arguments and what is chained behind it: tensor([1.]).cuda() has the callee "tensor" and the device cuda.
class CallReader {
  public:
    CallReader(const SyntaxTree& tree, SyntaxId call) {
        // Unwrap .cuda(), .to(...) and their like.
        while (call != kNoSyntax) {
            const SyntaxNode& node = tree.at(call);
            if (node.kind != SyntaxKind::Call) return;
            const SyntaxNode& callee = tree.at(node.first);
            if (callee.kind == SyntaxKind::Name) {
                m_callee = callee.text;
                for (SyntaxId id = callee.next; id != kNoSyntax; id = tree.at(id).next) {
                    const SyntaxNode& item = tree.at(id);
                    if (item.kind == SyntaxKind::Keyword) m_keywords.emplace_back(item.text, item.first);
                    else m_positional.push_back(id);
                }
                return;
            }
            if (callee.kind != SyntaxKind::Attribute) return;
            if (callee.text == "cuda") m_moved = true;
            call = callee.first;
        }
    }
    std::string_view callee() const { return m_callee; }
    bool onCuda() const { return m_moved; }
    SyntaxId positional(size_t at) const { return at < m_positional.size() ? m_positional[at] : kNoSyntax; }
    SyntaxId keyword(std::string_view name) const {
        for (const auto& [key, value] : m_keywords)
            if (key == name) return value;
        return kNoSyntax;
    }
    SyntaxId either(size_t at, std::string_view name) const {
        const SyntaxId found = keyword(name);
        return found != kNoSyntax ? found : positional(at);
    }

  private:
    std::string_view m_callee;
    bool m_moved = false;
    std::vector<SyntaxId> m_positional;
    std::vector<std::pair<std::string_view, SyntaxId>> m_keywords;
};

/// Literals of one parsed function.
class Literals {
  public:
    explicit Literals(const SyntaxTree& tree) : m_tree(tree) {}

    std::string_view text(SyntaxId id) const {
        const SyntaxNode& node = m_tree.at(id);
        return std::string_view(m_tree.source.text).substr(node.begin, node.end - node.begin);
    }
    /// A number or an expression over symbols (REPRO-7).
    Result<SymInt> size(SyntaxId id) const {
        if (id == kNoSyntax) return invalidInput("a size is missing");
        CT_TRY(Expr expr, parseExpr(text(id)));
        if (expr->dtype != DType::I64) return invalidInput("'" + std::string(text(id)) + "' is not an integer");
        SymInt value(std::move(expr));
        if (value.isInt() && value.value() < 0) return invalidInput("negative size, stride or offset " + value.text());
        return value;
    }
    Result<SymDims> sizes(SyntaxId id) const {
        if (id == kNoSyntax) return invalidInput("sizes are missing");
        const SyntaxNode& list = m_tree.at(id);
        if (list.kind != SyntaxKind::Tuple && list.kind != SyntaxKind::List)
            return invalidInput("sizes must be a tuple, not '" + std::string(text(id)) + "'");
        SymDims out;
        for (SyntaxId item = list.first; item != kNoSyntax; item = m_tree.at(item).next) {
            CT_TRY(SymInt one, size(item));
            out.push_back(std::move(one));
        }
        int64_t elements = 1;
        for (const SymInt& each : out)
            if (__builtin_mul_overflow(elements, std::max<int64_t>(each.asInt().value_or(1), 1), &elements))
                return invalidInput("the product of the sizes overflows 64 bits");
        if (out.size() > 64) return invalidInput(std::to_string(out.size()) + " dims; at most 64 are read");
        return out;
    }
    std::optional<DType> dtype(SyntaxId id) const {
        return id == kNoSyntax || m_tree.at(id).kind != SyntaxKind::Name ? std::nullopt
                                                                         : dtypeFromTorchName(m_tree.at(id).text);
    }
    /// 'cuda:0', device(type='cuda', index=0)
    Device device(SyntaxId id) const {
        if (id == kNoSyntax) return {};
        if (m_tree.at(id).kind == SyntaxKind::String)
            return deviceFromText(fxtext::unquote(m_tree.at(id).text)).value_or(Device{});
        const CallReader call(m_tree, id);
        const SyntaxId type = call.either(0, "type"), place = call.either(1, "index");
        if (type == kNoSyntax || m_tree.at(type).kind != SyntaxKind::String) return {};
        std::string name = fxtext::unquote(m_tree.at(type).text);
        if (place != kNoSyntax) name += ":" + std::string(text(place));
        return deviceFromText(name).value_or(Device{});
    }
    std::optional<double> number(SyntaxId id) const {
        const SyntaxNode& node = m_tree.at(id);
        if (node.kind == SyntaxKind::Unary && node.first != kNoSyntax) {
            const auto inner = number(node.first);
            return inner ? std::optional(node.symbol == fxtext::sym("-") ? -*inner : *inner) : std::nullopt;
        }
        if (node.kind == SyntaxKind::Name) {
            if (node.text == "True") return 1;
            if (node.text == "False") return 0;
            if (node.text == "inf") return std::numeric_limits<double>::infinity();
            if (node.text == "nan") return std::numeric_limits<double>::quiet_NaN();
            return std::nullopt;
        }
        if (node.kind != SyntaxKind::Integer && node.kind != SyntaxKind::Float) return std::nullopt;
        // 1. has no digit behind the point; from_chars reads it all the same.
        double value = 0;
        const auto [end, status] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
        return status == std::errc() ? std::optional(value) : std::nullopt;
    }
    /// Nested lists of numbers, with the sizes they make; false if they are ragged or hold something else.
    bool nested(SyntaxId id, size_t depth, std::vector<int64_t>& dims, std::vector<double>& values) const {
        const SyntaxNode& node = m_tree.at(id);
        if (node.kind != SyntaxKind::List) {
            const auto value = number(id);
            if (!value || depth != dims.size() || static_cast<int64_t>(values.size()) >= kMaxExact) return false;
            values.push_back(*value);
            return true;
        }
        int64_t count = 0;
        for (SyntaxId item = node.first; item != kNoSyntax; item = m_tree.at(item).next) ++count;
        if (depth == dims.size()) {
            if (!values.empty()) return false;
            dims.push_back(count);
        } else if (dims[depth] != count) return false;
        for (SyntaxId item = node.first; item != kNoSyntax; item = m_tree.at(item).next)
            if (!nested(item, depth + 1, dims, values)) return false;
        return true;
    }
    bool hasFloat(SyntaxId id) const {
        const SyntaxNode& node = m_tree.at(id);
        if (node.kind == SyntaxKind::Float ||
            (node.kind == SyntaxKind::Name && (node.text == "inf" || node.text == "nan")))
            return true;
        for (SyntaxId item = node.first; item != kNoSyntax; item = m_tree.at(item).next)
            if (hasFloat(item)) return true;
        return false;
    }

  private:
    const SyntaxTree& m_tree;
};

class LoadArgsReader {
  public:
    LoadArgsReader(const SyntaxTree& tree, ReproInputs& out) : m_tree(tree), m_literals(tree), m_out(out) {}

    Result<void> read(const Statement& statement) {
        if (statement.kind == StatementKind::Comment) return comment(statement.comment);
        if (statement.kind != StatementKind::Assign && statement.kind != StatementKind::Expression) return {};
        const CallReader call(m_tree, statement.value);
        Result<void> done;
        if (call.callee() == "reader.storage") done = storage(statement.target, call);
        else if (call.callee() == "reader.tensor") done = tensor(statement.comment, call);
        else if (call.callee() == "reader.symint") done = symint(statement.comment, call);
        else if (call.callee() == "reader.const")
            m_out.inputs.push_back({.kind = ReproInput::Kind::None, .name = nameOf(statement.comment), .type = {}});
        if (done) return {};
        Error error = std::move(done).error();
        error.where = m_tree.source.where(statement.begin);
        return error;
    }

  private:
    static std::string nameOf(std::string_view comment) {
        return std::string(trimmedInput(comment.substr(0, comment.find(','))));
    }

    Result<void> storage(std::string_view name, const CallReader& call) {
        ReproStorage out;
        const SyntaxId hash = call.positional(0);
        if (hash != kNoSyntax && m_tree.at(hash).kind == SyntaxKind::String)
            out.hash = fxtext::unquote(m_tree.at(hash).text);
        CT_TRY(out.bytes, m_literals.size(call.either(1, "nbytes")));
        m_devices.push_back(m_literals.device(call.keyword("device")));
        m_byName.insert_or_assign(name, m_out.storages.size());
        m_out.storages.push_back(std::move(out));
        return {};
    }
    Result<void> tensor(std::string_view comment, const CallReader& call) {
        ReproInput input;
        input.name = nameOf(comment);
        const SyntaxId buffer = call.positional(0);
        const auto it = buffer == kNoSyntax ? m_byName.end() : m_byName.find(m_literals.text(buffer));
        if (it == m_byName.end()) return invalidInput("the tensor's storage is not defined");
        input.storage = it->second;
        TensorType& type = input.type;
        type.device = m_devices[it->second];
        CT_TRY(type.sizes, m_literals.sizes(call.either(1, "shape")));
        const SyntaxId strides = call.either(2, "stride");
        type.strides = contiguousStrides(type.sizes);
        if (strides != kNoSyntax && m_tree.at(strides).text != "None") {
            CT_TRY(type.strides, m_literals.sizes(strides));
        }
        if (type.strides.size() != type.sizes.size())
            return invalidInput(std::to_string(type.strides.size()) + " strides for " +
                                std::to_string(type.sizes.size()) + " sizes");
        if (const SyntaxId dtype = call.keyword("dtype"); dtype != kNoSyntax) {
            const auto found = m_literals.dtype(dtype);
            if (!found) return invalidInput("'" + std::string(m_literals.text(dtype)) + "' is not a dtype");
            type.dtype = *found;
        }
        if (const SyntaxId offset = call.keyword("storage_offset"); offset != kNoSyntax) {
            CT_TRY(type.offset, m_literals.size(offset));
        }
        if (const SyntaxId grad = call.keyword("requires_grad"); grad != kNoSyntax)
            type.requiresGrad = m_literals.text(grad) == "True";
        m_out.inputs.push_back(std::move(input));
        return {};
    }
    Result<void> symint(std::string_view comment, const CallReader& call) {
        CT_TRY(const SymInt value, m_literals.size(call.either(0, "val")));
        if (!value.isInt()) return invalidInput("a symint must be written as a number");
        m_out.inputs.push_back(
            {.kind = ReproInput::Kind::SymInt, .name = nameOf(comment), .type = {}, .value = value.value()});
        return {};
    }
    Result<void> comment(std::string_view text) {
        const size_t at = text.find(" was unsupported type for dumping");
        if (at == std::string_view::npos) return {};
        m_out.inputs.push_back(
            {.kind = ReproInput::Kind::Unsupported, .name = std::string(trimmedInput(text.substr(0, at))), .type = {}});
        m_out.remarks.push_back("input " + std::string(trimmedInput(text)));
        return {};
    }

    const SyntaxTree& m_tree;
    const Literals m_literals;
    ReproInputs& m_out;
    std::vector<Device> m_devices;
    std::map<std::string_view, size_t> m_byName;
};

/// The tensor that an expression of a constructor makes (REPRO-2).
std::optional<ReproAttribute> tensorMadeBy(const SyntaxTree& tree, SyntaxId expression) {
    const CallReader call(tree, expression);
    const Literals literals(tree);
    ReproAttribute out;
    TensorType type;
    if (call.callee() == "torch.nn.Parameter" || call.callee() == "Parameter") {
        if (call.positional(0) == kNoSyntax) return std::nullopt;
        auto inner = tensorMadeBy(tree, call.positional(0));
        if (inner && inner->type) inner->type->requiresGrad = isFloating(inner->type->dtype);
        return inner;
    }
    std::optional<DType> dtype = literals.dtype(call.keyword("dtype"));
    type.device = call.onCuda() ? Device{DeviceType::Cuda, -1} : literals.device(call.keyword("device"));
    if (call.callee() == "tensor" || call.callee() == "torch.tensor") {
        const SyntaxId data = call.positional(0);
        std::vector<int64_t> dims;
        if (data == kNoSyntax || !literals.nested(data, 0, dims, out.values)) return std::nullopt;
        type.dtype = dtype.value_or(literals.hasFloat(data) ? DType::F32
                                    : literals.text(data).find("True") != std::string_view::npos ||
                                            literals.text(data).find("False") != std::string_view::npos
                                        ? DType::Bool
                                        : DType::I64);
        type.sizes = toSymDims(dims);
        out.exact = true;
    } else {
        static constexpr std::string_view kMakers[] = {"torch.randn", "torch.rand", "torch.randint",
                                                       "torch.zeros", "torch.ones", "torch.empty"};
        if (std::find(std::begin(kMakers), std::end(kMakers), call.callee()) == std::end(kMakers)) return std::nullopt;
        const bool integers = call.callee() == "torch.randint";
        auto sizes = literals.sizes(integers ? call.keyword("size") : call.either(0, "size"));
        if (!sizes) return std::nullopt;
        type.sizes = std::move(*sizes);
        type.dtype = dtype.value_or(integers ? DType::I64 : DType::F32);
    }
    type.strides = contiguousStrides(type.sizes);
    out.type = std::move(type);
    return out;
}

ReproAttribute readAttribute(std::string name, std::string_view expression) {
    ReproAttribute out;
    // The grammar knows functions only, so the expression becomes the body of one.
    if (const auto tree = fxtext::parseSyntax("def value():\n    value = " + std::string(expression) + "\n"))
        if (const auto& statements = (*tree)->root->statements;
            statements.size() == 1 && statements[0].value != kNoSyntax)
            if (auto made = tensorMadeBy(**tree, statements[0].value)) out = std::move(*made);
    out.name = std::move(name);
    out.text = std::string(expression);
    return out;
}

/// self.register_buffer('n', tensor(...)): name and expression.
std::optional<std::pair<std::string, std::string_view>> registeredBuffer(std::string_view line) {
    constexpr std::string_view kCall = "self.register_buffer(";
    if (!line.starts_with(kCall) || line.size() <= kCall.size()) return std::nullopt;
    const char quote = line[kCall.size()];
    const size_t end = line.find(quote, kCall.size() + 1);
    const size_t comma = end == std::string_view::npos ? end : line.find(',', end);
    if ((quote != '\'' && quote != '"') || comma == std::string_view::npos || !line.ends_with(")")) return std::nullopt;
    return std::pair(std::string(line.substr(kCall.size() + 1, end - kCall.size() - 1)),
                     trimmedInput(line.substr(comma + 1, line.size() - comma - 2)));
}

/// setattr(self, 'n', value), as to_folder writes names that are not identifiers.
std::optional<std::pair<std::string, std::string_view>> setAttribute(std::string_view line) {
    constexpr std::string_view kCall = "setattr(self, ";
    if (!line.starts_with(kCall) || line.size() <= kCall.size()) return std::nullopt;
    // A child that was pickled whole is never loaded; the comment says what it was.
    const size_t note = line.find(" # ");
    const std::string_view comment =
        note == std::string_view::npos ? std::string_view() : trimmedInput(line.substr(note + 3));
    line = trimmedInput(line.substr(0, note));
    const char quote = line.size() > kCall.size() ? line[kCall.size()] : ' ';
    const size_t end = line.find(quote, kCall.size() + 1);
    const size_t comma = end == std::string_view::npos ? end : line.find(',', end);
    if ((quote != '\'' && quote != '"') || comma == std::string_view::npos || !line.ends_with(")")) return std::nullopt;
    std::string_view value = trimmedInput(line.substr(comma + 1, line.size() - comma - 2));
    if (value.starts_with("torch.load(") && !comment.empty()) value = comment;
    return std::pair(std::string(line.substr(kCall.size() + 1, end - kCall.size() - 1)), value);
}

}  // namespace

std::map<std::string, int64_t> readReproSymbols(std::string_view head) {
    std::map<std::string, int64_t> symbols;
    while (!head.empty()) {
        const size_t end = std::min(head.find('\n'), head.size());
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(std::min(end + 1, head.size()));
        const size_t equals = line.find(" = ");
        if (equals == std::string_view::npos || line.empty() || line[0] == ' ') continue;
        const std::string_view name = line.substr(0, equals), value = trimmedInput(line.substr(equals + 3));
        int64_t number = 0;
        const auto [stop, status] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (looksLikeSymbol(name) && status == std::errc() && stop == value.data() + value.size())
            symbols.emplace(name, number);
    }
    return symbols;
}

Result<void> readLoadArgs(std::string_view function, ReproInputs& out) {
    CT_TRY(const auto tree, fxtext::parseSyntax(function));
    LoadArgsReader reader(*tree, out);
    for (const Statement& statement : tree->root->statements) CT_TRY_VOID(reader.read(statement));
    return {};
}

std::vector<ReproAttribute> readConstructor(std::string_view function) {
    std::vector<ReproAttribute> attributes;
    while (!function.empty()) {
        const size_t end = std::min(function.find('\n'), function.size());
        const std::string_view line = trimmedInput(function.substr(0, end));
        function.remove_prefix(std::min(end + 1, function.size()));
        if (auto buffer = registeredBuffer(line)) {
            attributes.push_back(readAttribute(std::move(buffer->first), buffer->second));
        } else if (auto set = setAttribute(line)) {
            attributes.push_back(readAttribute(std::move(set->first), set->second));
        } else if (const size_t equals = line.find(" = ");
                   line.starts_with("self.") && equals != std::string_view::npos) {
            attributes.push_back(
                readAttribute(std::string(line.substr(5, equals - 5)), trimmedInput(line.substr(equals + 3))));
        }
    }
    return attributes;
}

}  // namespace cutaway
