// Patterns bound to schemas.
#include "engine/rewrite/pattern.h"

#include <algorithm>
#include <map>

#include "engine/ir/node.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

using Each = PatternStatement::Each;

/// Commutative for tensors and numbers; adding tuples is not.
bool isCommutativeOperator(std::string_view name) {
    for (const std::string_view one : {"operator.add", "operator.mul", "operator.and_", "operator.or_", "operator.xor",
                                       "operator.eq", "operator.ne"})
        if (one == name) return true;
    return false;
}

class PatternCompiler {
  public:
    Result<Pattern> run(const PatternText& text) {
        for (const PatternStatement& statement : text.statements) CT_TRY_VOID(addCall(statement));
        for (const PatternItem& result : text.results) {
            const int slot = result.kind == PatternItem::Kind::Name ? m_out.slotOf(result.name) : -1;
            if (!m_out.isCall(slot)) return invalidInput("a result of 'find' must be the name of a call");
            PatternCall& call = callAt(slot);
            if ((call.each != Each::No && call.each != Each::Repeated) || call.exactReaders)
                return invalidInput("'" + result.name + "' is a result, which anybody may read");
            call.result = true;
            m_out.results.push_back(slot);
        }
        for (const std::vector<std::string>& names : text.different) {
            auto& slots = m_out.different.emplace_back();
            for (const std::string& name : names) {
                slots.push_back(m_out.slotOf(name));
                if (slots.back() < 0) return invalidInput("'" + name + "' stands nowhere else");
            }
        }
        CT_TRY_VOID(countReaders());
        return std::move(m_out);
    }

  private:
    PatternCall& callAt(int slot) {
        return m_out.calls[static_cast<size_t>(m_out.callOfSlot[static_cast<size_t>(slot)])];
    }
    const std::string& nameOf(int slot) const { return m_out.names[static_cast<size_t>(slot)]; }

    Result<void> addCall(const PatternStatement& statement) {
        if (m_out.slotOf(statement.name) >= 0)
            return invalidInput("'" + statement.name + "' is read before it is assigned");
        PatternCall call;
        call.shared = statement.shared;
        call.exactReaders = statement.readers;
        call.each = statement.each;
        for (const std::string& name : statement.ops) CT_TRY_VOID(addForms(name, statement, call.forms));
        call.slot = slotFor(statement.name);
        m_out.callOfSlot[static_cast<size_t>(call.slot)] = static_cast<int>(m_out.calls.size());
        m_out.calls.push_back(std::move(call));
        return {};
    }

    Result<void> addForms(const std::string& name, const PatternStatement& statement,
                          std::vector<PatternCall::Form>& forms) {
        if (const Op* op = statement.method ? nullptr : findOp(name)) {
            if (op->schema() == nullptr) return invalidInput("no operator '" + name + "'");
            CT_TRY(PatternCall::Form form, bind(*op, {op->schema(), op}, statement));
            forms.push_back(std::move(form));
            return {};
        }
        const std::vector<const Op*> overloads = statement.method ? std::vector<const Op*>() : overloadsOf(name);
        if (!overloads.empty()) return addOverloads(name, overloads, statement, forms);
        if (!statement.method && !mayBeFunction(name)) return invalidInput("no operator '" + name + "'");
        return addPythonForms(findOrMakeOpaque(name, statement.method ? Op::Style::Method : Op::Style::Function),
                              statement, forms);
    }
    /// "aten.add" stands for all overloads that take the arguments.
    static std::vector<const Op*> overloadsOf(const std::string& packet) {
        std::vector<const Op*> out;
        for (const Op* op : allOps())
            if (op->packet() == packet) out.push_back(op);
        return out;
    }
    Result<void> addOverloads(const std::string& name, const std::vector<const Op*>& overloads,
                              const PatternStatement& statement, std::vector<PatternCall::Form>& forms) {
        const size_t before = forms.size();
        for (const Op* op : overloads)
            if (auto form = bind(*op, {op->schema(), op}, statement)) forms.push_back(std::move(*form));
        if (forms.size() == before) return invalidInput("no overload of " + name + " takes these arguments");
        return {};
    }
    Result<void> addPythonForms(const Op& op, const PatternStatement& statement,
                                std::vector<PatternCall::Form>& forms) {
        const size_t before = forms.size();
        std::optional<Error> why;
        const std::vector<TorchSignature> signatures = torchSignatures(op);
        for (const TorchSignature& signature : signatures) {
            auto form = bind(op, signature, statement);
            if (!form) {
                if (!why) why = std::move(form).error();
                continue;
            }
            form->signature = signature.schema;
            forms.push_back(std::move(*form));
        }
        if (signatures.empty()) forms.emplace_back();
        else if (forms.size() == before) return *why;
        for (size_t i = before; i < forms.size(); ++i) {
            forms[i].op = &op;
            forms[i].rest = statement.rest;
            for (const PatternItem& item : statement.positional) forms[i].positional.push_back(argument(item, Param{}));
            for (const auto& [key, item] : statement.keywords)
                forms[i].keywords.emplace_back(key, argument(item, Param{}));
        }
        return {};
    }

    template <class Visit>
    static void forEachArg(const PatternCall& call, Visit&& visit) {
        const PatternCall::Form& form = call.forms[0];
        for (const PatternArg& arg : form.args) visit(arg);
        if (form.op->isOpaque() && form.signature == nullptr) {
            for (const PatternArg& arg : form.positional) visit(arg);
            for (const auto& [key, arg] : form.keywords) visit(arg);
        }
    }
    static bool mentions(const PatternArg& arg, int slot) {
        if ((arg.kind == PatternArg::Kind::Call && arg.slot == slot) || arg.starSlot == slot) return true;
        return std::any_of(arg.items.begin(), arg.items.end(),
                           [&](const PatternArg& item) { return mentions(item, slot); });
    }
    static bool reads(const PatternCall& call, int slot) {
        bool found = false;
        forEachArg(call, [&](const PatternArg& arg) { found |= mentions(arg, slot); });
        return found;
    }
    Result<void> countReaders() {
        for (PatternCall& call : m_out.calls)
            for (const PatternCall& reader : m_out.calls) call.readers += reads(reader, call.slot);
        // Readers stand behind what they read, so going back meets them first.
        for (size_t i = m_out.calls.size(); i-- > 0;) {
            PatternCall& call = m_out.calls[i];
            bool all = true;
            for (const PatternCall& reader : m_out.calls) {
                if (!reads(reader, call.slot)) continue;
                all &= reader.perItem;
                call.readByEach |= reader.perItem;
            }
            call.perItem = call.each != Each::No || (nameOf(call.slot)[0] == '%' && all && !call.result);
        }
        for (const PatternCall& call : m_out.calls) {
            const std::string& name = nameOf(call.slot);
            if (call.each == Each::Repeated && m_out.results != std::vector<int>{call.slot})
                return invalidInput("'" + name + "' is repeated, so it must be the only result");
            if (!call.result && call.readers == 0) return invalidInput("'" + name + "' is neither read nor returned");
            for (const PatternCall& reader : m_out.calls) CT_TRY_VOID(checkStars(reader, call));
        }
        return {};
    }
    /// A starred name (`*p`) must be marked 'each' or 'some', and such a name must be read with a star.
    Result<void> checkStars(const PatternCall& reader, const PatternCall& call) {
        bool starred = false, plain = false;
        const auto look = [&](const PatternArg& arg, auto&& self) -> void {
            starred |= arg.starSlot == call.slot;
            plain |= arg.kind == PatternArg::Kind::Call && arg.slot == call.slot;
            for (const PatternArg& item : arg.items) self(item, self);
        };
        forEachArg(reader, [&](const PatternArg& arg) { look(arg, look); });
        const std::string& name = nameOf(call.slot);
        if ((starred || plain) && call.each == Each::Repeated)
            return invalidInput("'" + name + "' is repeated, so the pattern cannot read it");
        if (starred && call.each == Each::No)
            return invalidInput("'" + name + "' must be marked 'each' or 'some' to stand for the items of a list");
        if (starred && reader.perItem)
            return invalidInput("'" + name + "' stands for items within items; that cannot be found");
        if (plain && call.each != Each::No)
            return invalidInput("'" + name + "' stands for the items of a list, as in [*" + name + "]");
        return {};
    }

    int slotFor(const std::string& name) {
        const int found = m_out.slotOf(name);
        if (found >= 0) return found;
        m_out.names.push_back(name);
        m_out.callOfSlot.push_back(-1);
        return static_cast<int>(m_out.names.size()) - 1;
    }

    Result<PatternCall::Form> bind(const Op& op, const TorchSignature& signature, const PatternStatement& statement) {
        const auto& params = signature.schema->params;
        PatternCall::Form form;
        form.op = &op;
        form.commutes = params.size() >= 2 &&
                        ((signature.aten && signature.aten->is(Tag::Commutative)) || isCommutativeOperator(op.name()));
        form.args.resize(params.size());
        std::vector<bool> given(params.size(), false);
        CT_TRY(const std::vector<PatternItem> positional, fitted(op, *signature.schema, statement.positional));
        for (size_t i = 0; i < positional.size(); ++i) {
            form.args[i] = argument(positional[i], params[i]);
            given[i] = true;
        }
        for (const auto& [key, value] : statement.keywords) {
            const int at = op.isOpaque() ? torchParameter(signature, key) : signature.schema->find(key);
            if (at < 0) return invalidInput(op.name() + ": no parameter named '" + key + "'");
            if (given[static_cast<size_t>(at)]) return invalidInput(op.name() + ": '" + key + "' is given twice");
            form.args[static_cast<size_t>(at)] = argument(value, params[static_cast<size_t>(at)]);
            given[static_cast<size_t>(at)] = true;
        }
        for (size_t i = 0; i < params.size(); ++i) {
            if (given[i] || statement.rest) continue;
            if (!params[i].hasDefault && !(op.isOpaque() && params[i].optional))
                return invalidInput(op.name() + ": argument '" + params[i].name + "' is missing");
            form.args[i].kind = PatternArg::Kind::Constant;
            form.args[i].constant = params[i].defaultValue;
        }
        return form;
    }
    /// Positional arguments by parameter: x.view(2, 3) gives view's list of sizes its numbers one by one.
    static Result<std::vector<PatternItem>> fitted(const Op& op, const Schema& schema,
                                                   const std::vector<PatternItem>& given) {
        const auto& params = schema.params;
        const auto positions = static_cast<size_t>(
            std::count_if(params.begin(), params.end(), [](const Param& param) { return !param.keywordOnly; }));
        std::vector<PatternItem> out = given;
        if (op.isOpaque() && positions > 0 && given.size() >= positions && params[positions - 1].list) {
            const bool number = given.back().kind == PatternItem::Kind::Constant && given.back().constant.isNumber();
            if (given.size() > positions || number) {
                PatternItem rest;
                rest.kind = PatternItem::Kind::List;
                rest.items.assign(given.begin() + static_cast<std::ptrdiff_t>(positions) - 1, given.end());
                out.resize(positions - 1);
                out.push_back(std::move(rest));
            }
        }
        if (out.size() > positions) return invalidInput(op.name() + ": more arguments than the schema has parameters");
        return out;
    }

    PatternArg argument(const PatternItem& item, const Param& param) {
        PatternArg out;
        switch (item.kind) {
            case PatternItem::Kind::Any: return out;
            case PatternItem::Kind::Constant:
                out.kind = PatternArg::Kind::Constant;
                out.constant = item.constant;
                // As nodes' arguments are bound: one number for an int[n] counts n times.
                if (param.list && item.constant.isNumber())
                    out.constant = Argument(
                        std::vector<Argument>(static_cast<size_t>(std::max(param.listSize, 1)), item.constant));
                return out;
            case PatternItem::Kind::Attribute:
                out.kind = PatternArg::Kind::Attribute;
                out.slot = slotFor(item.name);
                return out;
            case PatternItem::Kind::Name:
            case PatternItem::Kind::Star:
                out.slot = slotFor(item.name);
                out.kind = m_out.isCall(out.slot) ? PatternArg::Kind::Call : PatternArg::Kind::Value;
                return out;
            case PatternItem::Kind::List:
                out.kind = PatternArg::Kind::List;
                for (const PatternItem& one : item.items) {
                    if (one.kind != PatternItem::Kind::Star) {
                        out.items.push_back(argument(one, Param{}));
                        continue;
                    }
                    out.starAt = static_cast<int>(out.items.size());
                    if (one.name != "_") out.starSlot = slotFor(one.name);
                }
                return out;
        }
        return out;
    }

    Pattern m_out;
};

class Normalizer {
  public:
    explicit Normalizer(const Pattern& pattern) : m_pattern(pattern) {}
    std::string run() {
        std::string out;
        for (const PatternCall& call : m_pattern.calls) {
            out += name(call.slot) + (call.shared ? ": shared =" : " =");
            if (call.exactReaders) out += " " + std::to_string(call.exactReaders) + " readers";
            if (call.each != Each::No)
                out += call.each == Each::All ? " each" : call.each == Each::Some ? " some" : " repeated";
            for (const PatternCall::Form& form : call.forms) {
                out += (form.op->style() == Op::Style::Method ? " ." : " ") + form.op->name() + "(";
                for (const PatternArg& arg : form.args) out += item(arg) + ", ";
                for (const PatternArg& arg : form.positional) out += item(arg) + ", ";
                for (const auto& [key, arg] : form.keywords) out += key + "=" + item(arg) + ", ";
                out += form.rest ? "...)" : ")";
            }
            out += "\n";
        }
        for (const std::vector<int>& slots : m_pattern.different) {
            for (const int slot : slots) out += name(slot) + " != ";
            out += "\n";
        }
        out += "return";
        for (const int slot : m_pattern.results) out += " " + name(slot);
        return out;
    }

  private:
    std::string name(int slot) {
        const auto number = m_numbers.emplace(slot, m_numbers.size()).first->second;
        return "v" + std::to_string(number);
    }
    std::string item(const PatternArg& arg) {
        switch (arg.kind) {
            case PatternArg::Kind::Any: return "_";
            case PatternArg::Kind::Attribute: return "$" + name(arg.slot);
            case PatternArg::Kind::Value:
            case PatternArg::Kind::Call: return name(arg.slot);
            case PatternArg::Kind::Constant: return constantText(arg.constant);
            case PatternArg::Kind::List: break;
        }
        std::string out = "[";
        for (size_t i = 0; i <= arg.items.size(); ++i) {
            if (static_cast<int>(i) == arg.starAt) out += "*" + (arg.starSlot < 0 ? "_" : name(arg.starSlot)) + ", ";
            if (i < arg.items.size()) out += item(arg.items[i]) + ", ";
        }
        return out + "]";
    }
    const Pattern& m_pattern;
    std::map<int, size_t> m_numbers;
};

}  // namespace

Result<Pattern> compilePattern(const PatternText& text) { return PatternCompiler().run(text); }

namespace {
bool isPythonLibrary(std::string_view name) {
    for (const std::string_view one : {"torch", "operator", "math", "builtins", "higher_order"})
        if (one == name) return true;
    return false;
}
}  // namespace

bool isLibrary(std::string_view name) {
    return isPythonLibrary(name) || std::any_of(allOps().begin(), allOps().end(), [&](const Op* op) {
               return op->name().size() > name.size() && op->name().starts_with(name) && op->name()[name.size()] == '.';
           });
}
bool mayBeFunction(std::string_view name) {
    const size_t dot = name.find('.');
    return isPythonLibrary(name.substr(0, dot)) || (dot != std::string_view::npos && !isLibrary(name.substr(0, dot)));
}

int Pattern::slotOf(std::string_view name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

std::string Pattern::normalized() const { return Normalizer(*this).run(); }

bool sameConstant(const Argument& a, const Argument& b) {
    if (const auto left = a.asInt())
        if (const auto right = b.asInt()) return *left == *right;
    if (const auto left = a.asReal())
        if (const auto right = b.asReal()) return *left == *right;
    if (const auto* left = a.list(), *right = b.list(); left && right)
        return std::equal(left->begin(), left->end(), right->begin(), right->end(), sameConstant);
    return equal(a, b);
}

std::string constantText(const Argument& value) {
    return value.node() ? "`" + value.node()->name() + "`" : printArgument(value);
}

}  // namespace cutaway
