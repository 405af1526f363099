#include "engine/runtime/wire.h"

#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

enum class Mark : uint8_t {
    None,
    Value,
    Bool,
    Int,
    Real,
    Complex,
    Text,
    DType,
    Device,
    Layout,
    Format,
    Expression,
    Subgraph,
    Op,
    Ellipsis,
    Lost,
    Slice,
    Dict,
    List
};

}  // namespace

void writeExpr(ByteWriter& out, const Expr& expr) {
    out.pod(static_cast<bool>(expr));
    if (!expr) return;
    out.pod(expr->kind);
    out.pod(expr->dtype);
    out.pod(expr->integer);
    out.pod(expr->real);
    out.text(expr->name);
    out.count(expr->operands.size());
    for (const Expr& operand : expr->operands) writeExpr(out, operand);
}

Expr readExpr(ByteReader& in) {
    if (!in.pod<bool>()) return {};
    const auto kind = in.pod<ExprKind>();
    const auto dtype = in.pod<DType>();
    const auto integer = in.pod<int64_t>();
    const auto real = in.pod<double>();
    std::string name(in.text());
    std::vector<Expr> operands;
    in.each([&] { operands.push_back(readExpr(in)); });
    if (in.failed()) return {};
    switch (kind) {
        case ExprKind::Int: return Expr::integer(integer, dtype);
        case ExprKind::Float: return Expr::real(real, dtype);
        case ExprKind::Bool: return Expr::boolean(integer != 0);
        case ExprKind::Symbol: return Expr::symbol(std::move(name), dtype);
        case ExprKind::Load: return Expr::load(std::move(name), operands.at(0), dtype);
        case ExprKind::Call: return Expr::call(name, std::move(operands), dtype);
        case ExprKind::Cast: return Expr::cast(operands.at(0), dtype);
        default: return Expr::make(kind, std::move(operands), dtype);
    }
}

void writeSize(ByteWriter& out, const SymInt& size) {
    out.pod(size.isInt());
    if (size.isInt()) out.pod(size.value());
    else writeExpr(out, size.expr());
}
SymInt readSize(ByteReader& in) { return in.pod<bool>() ? SymInt(in.pod<int64_t>()) : SymInt(readExpr(in)); }

namespace {

void writeSizes(ByteWriter& out, const SymDims& sizes) {
    out.count(sizes.size());
    for (const SymInt& size : sizes) writeSize(out, size);
}
SymDims readSizes(ByteReader& in) {
    SymDims sizes;
    in.each([&] { sizes.push_back(readSize(in)); });
    return sizes;
}

/// Writes the alternative that an argument holds.
struct ArgumentWriter {
    ByteWriter& out;
    const NodeNumber& number;

    void operator()(std::monostate) const { out.pod(Mark::None); }
    void operator()(const Node* node) const {
        out.pod(Mark::Value);
        out.pod(number(*node));
    }
    void operator()(bool v) const {
        out.pod(Mark::Bool);
        out.pod(v);
    }
    void operator()(int64_t v) const {
        out.pod(Mark::Int);
        out.pod(v);
    }
    void operator()(double v) const {
        out.pod(Mark::Real);
        out.pod(v);
    }
    void operator()(const std::complex<double>& v) const {
        out.pod(Mark::Complex);
        out.pod(v.real());
        out.pod(v.imag());
    }
    void operator()(const std::string& v) const {
        out.pod(Mark::Text);
        out.text(v);
    }
    void operator()(DType v) const {
        out.pod(Mark::DType);
        out.pod(v);
    }
    void operator()(Device v) const {
        out.pod(Mark::Device);
        out.pod(v);
    }
    void operator()(Layout v) const {
        out.pod(Mark::Layout);
        out.pod(v);
    }
    void operator()(MemoryFormat v) const {
        out.pod(Mark::Format);
        out.pod(v);
    }
    void operator()(const Expr& v) const {
        out.pod(Mark::Expression);
        writeExpr(out, v);
    }
    void operator()(const SubgraphRef& v) const {
        out.pod(Mark::Subgraph);
        out.text(v.name);
    }
    void operator()(const OpRef& v) const {
        out.pod(Mark::Op);
        out.text(v.op->name());
        out.pod(v.op->style());
    }
    void operator()(Ellipsis) const { out.pod(Mark::Ellipsis); }
    void operator()(const LostTensor& v) const {
        out.pod(Mark::Lost);
        out.text(v.text);
    }
    void operator()(const std::shared_ptr<const ArgumentSlice>& v) const {
        out.pod(Mark::Slice);
        for (const Argument* part : {&v->start, &v->stop, &v->step}) writeArgument(out, *part, number);
    }
    void operator()(const std::shared_ptr<const ArgumentDict>& v) const {
        out.pod(Mark::Dict);
        out.count(v->items.size());
        for (const auto& [key, item] : v->items) {
            out.text(key);
            writeArgument(out, item, number);
        }
    }
    void operator()(const std::shared_ptr<const ArgumentList>& v) const {
        out.pod(Mark::List);
        out.pod(v->tuple);
        out.count(v->items.size());
        for (const Argument& item : v->items) writeArgument(out, item, number);
    }
};

}  // namespace

void writeArgument(ByteWriter& out, const Argument& arg, const NodeNumber& number) {
    std::visit(ArgumentWriter{out, number}, arg.kind());
}

Argument readArgument(ByteReader& in, const NodeAt& node) {
    switch (in.pod<Mark>()) {
        case Mark::None: return {};
        case Mark::Value: {
            Node* found = node(in.pod<uint32_t>());
            if (found == nullptr) in.fail();
            return found == nullptr ? Argument() : Argument(found);
        }
        case Mark::Bool: return in.pod<bool>();
        case Mark::Int: return in.pod<int64_t>();
        case Mark::Real: return in.pod<double>();
        case Mark::Complex: {
            const auto real = in.pod<double>(), imaginary = in.pod<double>();
            return std::complex<double>(real, imaginary);
        }
        case Mark::Text: return std::string(in.text());
        case Mark::DType: return in.pod<DType>();
        case Mark::Device: return in.pod<Device>();
        case Mark::Layout: return in.pod<Layout>();
        case Mark::Format: return in.pod<MemoryFormat>();
        case Mark::Expression: return readExpr(in);
        case Mark::Subgraph: return SubgraphRef{std::string(in.text())};
        case Mark::Op: {
            const std::string name(in.text());
            return OpRef{&findOrMakeOpaque(name, in.pod<Op::Style>())};
        }
        case Mark::Ellipsis: return Ellipsis{};
        case Mark::Lost: return LostTensor{std::string(in.text())};
        case Mark::Slice: {
            ArgumentSlice slice;
            for (Argument* part : {&slice.start, &slice.stop, &slice.step}) *part = readArgument(in, node);
            return std::make_shared<const ArgumentSlice>(std::move(slice));
        }
        case Mark::Dict: {
            ArgumentDict dict;
            in.each([&] {
                std::string key(in.text());
                dict.items.emplace_back(std::move(key), readArgument(in, node));
            });
            return std::make_shared<const ArgumentDict>(std::move(dict));
        }
        case Mark::List: {
            ArgumentList list;
            list.tuple = in.pod<bool>();
            in.each([&] { list.items.push_back(readArgument(in, node)); });
            return list;
        }
    }
    in.fail();
    return {};
}

void writeType(ByteWriter& out, const ValueType& type) {
    out.pod(static_cast<uint8_t>(type.kind.index()));
    if (const TensorType* tensor = type.tensor()) {
        out.pod(tensor->dtype);
        out.pod(tensor->device);
        writeSizes(out, tensor->sizes);
        writeSizes(out, tensor->strides);
        writeSize(out, tensor->offset);
        out.pod(tensor->layout);
        out.pod(tensor->requiresGrad);
        out.pod(tensor->assumed);
    } else if (const SymType* symbol = type.sym()) {
        out.pod(symbol->dtype);
        writeExpr(out, symbol->expr);
    } else if (const auto* opaque = std::get_if<OpaqueType>(&type.kind)) {
        out.text(opaque->description);
    } else if (const TupleType* items = type.tuple()) {
        out.count(items->size());
        for (const ValueType& item : *items) writeType(out, item);
    }
}

ValueType readType(ByteReader& in) {
    switch (in.pod<uint8_t>()) {
        case 0: return {};
        case 1: {
            TensorType type;
            type.dtype = in.pod<DType>();
            type.device = in.pod<Device>();
            type.sizes = readSizes(in);
            type.strides = readSizes(in);
            type.offset = readSize(in);
            type.layout = in.pod<Layout>();
            type.requiresGrad = in.pod<bool>();
            type.assumed = in.pod<bool>();
            return type;
        }
        case 2: {
            SymType type;
            type.dtype = in.pod<DType>();
            type.expr = readExpr(in);
            return type;
        }
        case 3: return OpaqueType{std::string(in.text())};
        case 4: {
            TupleType items;
            in.each([&] { items.push_back(readType(in)); });
            return items;
        }
        default: in.fail(); return {};
    }
}

void writeError(ByteWriter& out, const Error& error) {
    out.pod(error.code);
    out.text(error.message);
    out.text(error.where);
    out.count(error.notes.size());
    for (const std::string& note : error.notes) out.text(note);
}

Error readError(ByteReader& in) {
    Error error;
    error.code = in.pod<ErrorCode>();
    error.message = in.text();
    error.where = in.text();
    in.each([&] { error.notes.emplace_back(in.text()); });
    return error;
}

}  // namespace cutaway
