// Reads the text of a loop nest, line by line; what stands deeper than its loop is inside.
#include <algorithm>

#include "engine/loops/line_reader.h"
#include "engine/loops/nest_text.h"

namespace cutaway {
namespace {

constexpr int64_t kMostCopies = 64;  // of the statements of a loop

class NestReader {
  public:
    Result<LoopNest> read(std::string_view source) {
        m_names.nest = true;
        bool begun = false;
        for (int number = 1; !source.empty(); ++number) {
            const size_t end = source.find('\n');
            const std::string_view line = source.substr(0, end);
            source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
            LineReader in(line, m_names);
            if (in.atEnd() || in.take("#")) continue;
            if (begun) inside(in, line.find_first_not_of(' '));
            else in.header(m_nest.name, m_names);
            begun = true;
            if (in.error.empty() && !in.atEnd()) in.fail("the end of the line");
            if (!in.error.empty()) return invalidInput(in.error, "line " + std::to_string(number));
        }
        if (!begun) return invalidInput("a nest begins with its name and buffers: sums(b0: f32!, b1: f32)", "line 1");
        while (!m_open.empty()) close();
        finish();
        if (const int axis = unbound(m_nest.body, {}); axis >= 0)
            return invalidInput("x" + std::to_string(axis) + " is read where no loop over it is open", m_nest.name);
        return std::move(m_nest);
    }

  private:
    /// A loop or condition whose body is being read.
    struct Open {
        std::variant<For, If> stmt;
        size_t indent;
        Body around;         // where it goes
        std::set<int> vars;  // declared inside
    };

    /// An axis that something reads outside of its loop, or -1.
    static int unbound(Body& body, std::set<int> bound) {
        for (Stmt& stmt : body) {
            int found = -1;
            forEachValue(stmt, [&](const Expr& value) {
                forEachExpr({value}, [&](const Expr& e) {
                    if (e->kind == ExprKind::Axis && !bound.contains(static_cast<int>(e->integer)))
                        found = static_cast<int>(e->integer);
                });
            });
            if (const auto* index = std::get_if<Index>(&stmt.node)) bound.insert(index->axis);
            if (auto* branch = std::get_if<If>(&stmt.node); branch && found < 0) found = unbound(branch->body, bound);
            if (auto* loop = std::get_if<For>(&stmt.node); loop && found < 0) {
                std::set<int> own = bound;
                own.insert(loop->axis);
                found = unbound(loop->body, std::move(own));
            }
            if (found >= 0) return found;
        }
        return -1;
    }

    void finish() {
        m_nest.buffers = std::move(m_names.buffers);
        m_nest.sizes = std::move(m_names.sizes);
        m_nest.scratch = std::move(m_names.scratch);
        m_nest.body = std::move(m_body);
        if (!m_vars.empty()) m_nest.vars.resize(static_cast<size_t>(m_vars.rbegin()->first) + 1);
        for (const auto& [number, var] : m_vars) m_nest.vars[static_cast<size_t>(number)] = var;
    }
    void close() {
        Open open = std::move(m_open.back());
        m_open.pop_back();
        for (const int var : open.vars) m_names.vars.erase(var);
        Body body = std::exchange(m_body, std::move(open.around));
        std::visit(
            [&](auto& stmt) {
                stmt.body = std::move(body);
                append(std::move(stmt));
            },
            open.stmt);
    }
    template <class S>
    void append(S stmt) {
        m_body.push_back({std::move(stmt)});
    }
    template <class S>
    void open(LineReader& in, S stmt, size_t indent) {
        in.expect(":");
        m_open.push_back({std::move(stmt), indent, std::exchange(m_body, {}), {}});
    }
    void inside(LineReader& in, size_t indent) {
        while (!m_open.empty() && indent <= m_open.back().indent) close();
        const bool top = m_open.empty() && m_body.empty();
        if (in.takeWord("lanes")) return declaration(in, top, [&] { m_nest.lanes = count(in, 1024); });
        if (in.takeWord("range")) return declaration(in, top, [&] { range(in); });
        if (in.takeWord("scratch")) return declaration(in, top, [&] { scratch(in); });
        statement(in, indent);
    }
    template <class Read>
    static void declaration(LineReader& in, bool top, const Read& readIt) {
        if (!top) return in.say("lanes, range and scratch arrays stand before all statements");
        readIt();
    }
    static int count(LineReader& in, int64_t most) {
        const auto value = in.bound().asInt();
        if (value && *value >= 1 && *value <= most) return static_cast<int>(*value);
        in.say("a number from 1 to " + std::to_string(most) + " is expected");
        return 1;
    }
    void range(LineReader& in) {
        const Expr size = in.expression();
        if (size->dtype != DType::I64 || size->outOfRange) in.say("the range of a nest is an i64");
        else if (in.error.empty()) m_nest.range = SymInt(size);
    }
    void scratch(LineReader& in) {
        const auto number = numberAfter('c', in.word());
        if (!number || static_cast<size_t>(*number) != m_names.scratch.size())
            return in.say("scratch arrays are numbered from c0 on: scratch c0: f32[64]");
        in.expect(":");
        const auto dtype = dtypeFromAbbreviation(in.word());
        if (!dtype) return in.fail("a dtype, f32,");
        in.expect("[");
        m_names.scratch.push_back({*dtype, count(in, int64_t{1} << 24)});
        in.expect("]");
    }

    void statement(LineReader& in, size_t indent) {
        const std::string_view word = in.word();
        if (word == "parallel" || word == "vector" || word == "for") return loop(in, word, indent);
        if (word == "if") {
            Expr condition = in.expression();
            if (condition->dtype != DType::Bool) in.say("the condition of an if is a bool");
            return open(in, If{std::move(condition), {}}, indent);
        }
        if (word == "let" || word == "var") return define(in, word == "var");
        if (word == "alloc" || word == "accumulate" || word == "combine") return reduce(in, word);
        if (word == "barrier") return append(Barrier{});
        if (word == "transpose") return transpose(in);
        if (word == "prefetch") return prefetch(in);
        if (const auto axis = numberAfter('x', word)) {
            in.expect("=");
            return append(Index{*axis, in.expression()});
        }
        if (const auto name = numberAfter('v', word)) {
            in.expect("=");
            const Expr value = in.expression();
            if (in.error.empty() && !m_names.values.emplace(*name, value).second)
                in.say(std::string(word) + " has been given a value before");
            return;
        }
        if (const auto var = numberAfter('t', word)) return assign(in, *var);
        const auto buffer = numberAfter('b', word), array = numberAfter('c', word);
        if (buffer || array) return store(in, buffer ? *buffer : ~*array, false);
        if (const auto shared = word == "atomic" ? numberAfter('b', in.word()) : std::nullopt)
            return store(in, *shared, true);
        in.fail(
            "a statement: for x0 in 0 .. 9:, let t0: f32 = ..., b0[x0] = ..., if, var, alloc, accumulate, combine, barrier, prefetch, transpose,");
    }
    void prefetch(LineReader& in) {
        const auto buffer = numberAfter('b', in.word());
        if (!buffer || static_cast<size_t>(*buffer) >= m_names.buffers.size()) return in.fail("a buffer, b0,");
        in.expect("[");
        Prefetch made{*buffer, in.expression(), false};
        in.expect("]");
        if (in.takeWord("to")) {
            if (!in.takeWord("write")) return in.fail("write");
            made.toWrite = true;
        }
        append(std::move(made));
    }
    void loop(LineReader& in, std::string_view word, size_t indent) {
        For made;
        if (word == "parallel") {
            made.map = Map::Parallel;
            word = in.word();
        }
        if (word == "vector") {
            made.lanes = count(in, 1024);
            word = in.word();
        }
        if (word == "unroll_jam") {
            made.unrollJam = count(in, kMostCopies);
            word = in.word();
        }
        if (word == "accumulators") {
            made.accumulators = count(in, kMostCopies);
            word = in.word();
        }
        if (word == "whole") {
            made.whole = true;
            word = in.word();
        }
        const auto axis = word == "for" ? numberAfter('x', in.word()) : std::nullopt;
        if (!axis || !in.takeWord("in")) return in.fail("a loop, for x0 in 0 .. 9:,");
        made.axis = *axis;
        made.from = in.bound();
        in.expect("..");
        made.to = in.bound();
        if (made.lanes > 1 && made.lanes != m_nest.lanes) return in.say("a vector loop has the lanes of its nest");
        open(in, std::move(made), indent);
    }
    /// "t0: f32x16".
    std::optional<int> declare(LineReader& in, bool changes) {
        const auto number = numberAfter('t', in.word());
        if (!number || *number > 1 << 20) {
            in.fail("a variable, t0: f32,");
            return std::nullopt;
        }
        in.expect(":");
        const std::string_view type = in.word();
        const size_t lanes = type.find('x');
        const auto dtype = dtypeFromAbbreviation(type.substr(0, lanes));
        NestVar var{dtype.value_or(DType::F32), 1, changes};
        if (!dtype) in.fail("a dtype, f32 or f32x16,");
        if (lanes != std::string_view::npos) {
            if (numberAfter('x', type.substr(lanes)) != m_nest.lanes) in.say("a vector has the lanes of its nest");
            var.lanes = m_nest.lanes;
        }
        if (in.error.empty() && !m_names.vars.emplace(*number, var).second)
            in.say("t" + std::to_string(*number) + " has been declared before");
        if (!m_open.empty()) m_open.back().vars.insert(*number);
        // Pieces of one loop declare the same variables.
        const NestVar& slot = m_vars.emplace(*number, var).first->second;
        if (slot.dtype != var.dtype || slot.lanes != var.lanes || slot.changes != var.changes)
            in.say("t" + std::to_string(*number) + " has been declared before with another type");
        return number;
    }
    void define(LineReader& in, bool changes) {
        // Out of scope while its own value is read.
        const auto var = declare(in, changes);
        if (!var || !in.error.empty()) return;
        const NestVar nestVar = m_names.vars.extract(*var).mapped();
        in.expect("=");
        const Expr value = in.expression();
        m_names.vars.emplace(*var, nestVar);
        if (computeTypeOf(value->dtype) != computeTypeOf(nestVar.dtype) && in.error.empty())
            return in.say("t" + std::to_string(*var) + " is given a value of another dtype");
        if (changes) append(Declare{*var, value});
        else append(Let{*var, value});
    }
    void assign(LineReader& in, int var) {
        in.variable(var);
        if (!in.error.empty()) return;
        const NestVar& nestVar = m_names.vars.at(var);
        if (!nestVar.changes)
            return in.say("t" + std::to_string(var) + " does not change: var t0: f32 = ... declares what does");
        in.expect("=");
        const Expr value = in.expression();
        if (computeTypeOf(value->dtype) != computeTypeOf(nestVar.dtype) && in.error.empty())
            return in.say("t" + std::to_string(var) + " is given a value of another dtype");
        append(Set{var, value});
    }
    void reduce(LineReader& in, std::string_view word) {
        const auto number = reducerByName(in.word());
        if (!number) return in.fail("a reducer, sum,");
        std::vector<int> states;
        do {
            const auto state = word == "alloc" ? declare(in, true) : numberAfter('t', in.word());
            if (!state) return in.fail("a state, t0,");
            if (word != "alloc") in.variable(*state);
            states.push_back(*state);
        } while (in.error.empty() && in.take(","));
        if (word == "alloc") {
            const auto body = in.takeWord("of") ? dtypeFromAbbreviation(in.word()) : std::nullopt;
            if (!body) return in.fail("the dtype of what is reduced, of f32,");
            if (reducer(*number).stateTypes(*body, *body).size() != states.size())
                return in.say(std::string(reducer(*number).name) + " has another number of states");
            return append(Alloc{*number, *body, std::move(states)});
        }
        if (!in.takeWord("with")) return in.fail("with and a value");
        std::vector<Expr> with;
        do with.push_back(in.expression());
        while (word == "combine" && in.error.empty() && in.take(","));
        if (word == "combine") return append(Combine{*number, std::move(states), std::move(with)});
        const Expr at = in.takeWord("at") ? in.expression() : Expr();
        const Expr active = in.takeWord("where") ? in.expression() : Expr();
        append(Accumulate{*number, std::move(states), with[0], at, active});
    }
    void transpose(LineReader& in) {
        Transpose made;
        if (!side(in, made.to)) return;
        if (!in.takeWord("with"))
            return in.fail("with and a matrix, transpose c1[0] by 64 with c0[0] by 16 of 64 by 16");
        if (!side(in, made.from)) return;
        if (!in.takeWord("of")) return in.fail("of and the number of rows");
        made.rows = in.expression();
        if (!in.takeWord("by")) return in.fail("by and the number of columns");
        made.columns = in.expression();
        if (!in.error.empty() || !isWritten(in, made.to.buffer)) return;
        if (in.memoryOf(made.to.buffer) != in.memoryOf(made.from.buffer) || made.to.buffer == made.from.buffer)
            return in.say("a matrix is transposed into other memory of its dtype");
        if (!holds(made.from, made.rows, made.columns) || !holds(made.to, made.columns, made.rows))
            return in.say("scratch memory does not hold so many elements");
        append(made);
    }
    /// b0[x1] by 64: memory, where the matrix begins, and how far its rows are apart.
    bool side(LineReader& in, Transpose::Side& made) {
        const std::string_view word = in.word();
        const auto buffer = numberAfter('b', word), array = numberAfter('c', word);
        if (!buffer && !array) in.fail("memory, b0 or c0,");
        made.buffer = buffer ? *buffer : ~array.value_or(0);
        if (!in.error.empty() || !in.memoryOf(made.buffer)) return false;
        in.expect("[");
        made.index = in.expression();
        in.expect("]");
        if (in.error.empty() && !in.takeWord("by")) in.fail("by and how far rows are apart");
        if (in.error.empty()) made.step = in.expression();
        return in.error.empty();
    }
    /// Whether scratch memory is as large as numbers say; what is known only at run time is not checked.
    bool holds(const Transpose::Side& side, const Expr& rows, const Expr& columns) const {
        const auto index = side.index.asInt(), step = side.step.asInt(), count = rows.asInt(), row = columns.asInt();
        if (side.buffer >= 0 || !index || !step || !count || !row) return true;
        const int64_t all = m_names.scratch[static_cast<size_t>(~side.buffer)].count;
        return *index >= 0 && *step >= 0 && *index + (*count - 1) * *step + *row <= all;
    }
    bool isWritten(LineReader& in, int buffer) const {
        if (buffer < 0 || m_names.buffers[static_cast<size_t>(buffer)].written) return true;
        in.say(bufferName(buffer) + " is not written: mark it in the first line, " + bufferName(buffer) + ": " +
               std::string(info(*in.memoryOf(buffer)).abbreviation) + "!");
        return false;
    }
    void store(LineReader& in, int buffer, bool atomic) {
        const auto memory = in.memoryOf(buffer);
        if (!memory) return;
        if (!isWritten(in, buffer)) return;
        in.expect("[");
        const Expr index = in.expression();
        const Expr step = in.take(":") ? in.expression() : Expr();
        in.expect("]");
        const bool adds = in.take("+=");
        if (!adds) in.expect("=");
        if (atomic && !adds) return in.say("what is atomic adds: atomic b0[x0] += ...");
        if (adds && (isHalf(*memory) || *memory == DType::Bool)) return in.say("what adds is of f32, f64 or integers");
        const StoreHow how = atomic ? StoreHow::Atomic : adds ? StoreHow::Adds : StoreHow::Puts;
        const Expr value = in.expression();
        if (in.error.empty() && computeTypeOf(value->dtype) != computeTypeOf(*memory))
            return in.say("what is stored has the dtype of its buffer");
        append(Store{buffer, index, step, value, how});
    }

    LoopNest m_nest;
    TextNames m_names;
    std::map<int, NestVar> m_vars;  // all that were declared; m_names has those in scope
    std::vector<Open> m_open;
    Body m_body;  // of what is open
};

}  // namespace

Result<LoopNest> parseNest(std::string_view source) { return NestReader().read(source); }

}  // namespace cutaway
