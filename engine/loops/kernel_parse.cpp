// Reads the text of a kernel, line by line.
#include "engine/loops/kernel_text.h"
#include "engine/loops/line_reader.h"
#include "engine/loops/unique_exprs.h"

namespace cutaway {
namespace {

class KernelReader {
  public:
    Result<Kernel> read(std::string_view source) {
        bool begun = false;
        int number = 1;
        for (; !source.empty(); ++number) {
            const size_t end = source.find('\n');
            const std::string_view line = source.substr(0, end);
            source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
            LineReader in(line, m_names);
            if (in.atEnd() || in.take("#")) continue;
            if (begun) statement(in);
            else in.header(m_kernel.name, m_names);
            begun = true;
            if (in.error.empty() && !in.atEnd()) in.fail("the end of the line");
            if (!in.error.empty()) return invalidInput(in.error, "line " + std::to_string(number));
        }
        if (!begun)
            return invalidInput("a kernel begins with its name and buffers: scale(b0: f32!, b1: f32)", "line 1");
        m_kernel.buffers = std::move(m_names.buffers);
        m_kernel.sizes = std::move(m_names.sizes);
        return std::move(m_kernel);
    }

  private:
    void statement(LineReader& in) {
        if (in.takeWord("for")) {
            if (!m_kernel.outer.empty() || !m_kernel.stores.empty() || !m_names.values.empty())
                return in.say("outer loops stand in one line, before all others");
            m_kernel.outer = in.loops();
            return in.expect(":");
        }
        const std::string_view target = in.word();
        if (const auto name = numberAfter('v', target)) {
            in.expect("=");
            const Expr value = in.expression();
            if (in.error.empty() && !m_names.values.emplace(*name, value).second)
                in.say(std::string(target) + " has been given a value before");
            return;
        }
        const auto buffer = numberAfter('b', target);
        if (!buffer) return in.fail("loops, for x0 < 9:, a name, v0 = ..., or a store, b0[x0] = ...,");
        store(in, *buffer);
    }
    void store(LineReader& in, int buffer) {
        if (!in.memoryOf(buffer)) return;
        const KernelBuffer& written = m_names.buffers[static_cast<size_t>(buffer)];
        if (!written.written)
            return in.say(bufferName(buffer) + " is not written: mark it in the first line, " + bufferName(buffer) +
                          ": " + std::string(info(written.dtype).abbreviation) + "!");
        KernelStore made;
        made.buffer = buffer;
        in.expect("[");
        made.index = in.expression();
        in.expect("]");
        made.adds = in.take("+=");
        if (!made.adds) in.expect("=");
        if (made.adds && (isHalf(written.dtype) || written.dtype == DType::Bool))
            return in.say("what adds is of f32, f64 or integers");
        made.value = in.expression();
        if (in.error.empty() && in.takeWord("for")) made.inner = in.loops();
        if (!in.error.empty()) return;
        checkAxes(in, made);
        m_kernel.stores.push_back(std::move(made));
    }
    /// Every axis is one of a loop around it.
    void checkAxes(LineReader& in, const KernelStore& made) {
        std::set<int> read = m_exprs.leaves(made.index);
        const std::set<int>& value = m_exprs.leaves(made.value);
        read.insert(value.begin(), value.end());
        for (const std::vector<Loop>* loops : {&std::as_const(m_kernel.outer), &made.inner})
            for (const Loop& loop : *loops) read.erase(axisKey(loop.axis));
        if (!read.empty()) in.say("there is no loop over x" + std::to_string(*read.begin() / 2) + " around this store");
    }

    Kernel m_kernel;
    TextNames m_names;
    UniqueExprs m_exprs;
};

}  // namespace

Result<Kernel> parseKernel(std::string_view source) { return KernelReader().read(source); }

}  // namespace cutaway
