// Calls of graphs in printed programs, by the rules of the interpreter (interpret/higher_order.cpp).
#include "engine/runtime/exported/host_support.h"

namespace ct {
namespace {

/// A tensor with memory of its own, row by row.
class OwnTensor {
  public:
    explicit OwnTensor(const CtTensor& from)
        : m_dtype(from.dtype), m_rank(from.rank), m_memory(std::make_unique<Memory>()) {
        int64_t step = 1;
        if (from.rank > 0) m_sizes.assign(from.sizes, from.sizes + from.rank);
        m_strides.resize(m_sizes.size());
        for (size_t d = m_sizes.size(); d-- > 0; step *= m_sizes[d]) m_strides[d] = step;
        m_memory->grow(extentOf(m_dtype, m_rank, m_sizes.data(), m_strides.data()));
        if (m_rank >= 0) layOut(from, m_strides.data(), m_memory->data());
    }
    CtTensor tensor() const { return {m_memory->data(), m_dtype, m_rank, m_sizes.data(), m_strides.data()}; }

  private:
    int32_t m_dtype, m_rank;
    std::vector<int64_t> m_sizes, m_strides;
    std::unique_ptr<Memory> m_memory;
};

class GraphCall {
  public:
    GraphCall(Frame& frame, const char* node, const std::vector<size_t>& functions,
              const std::vector<std::vector<CtTensor>>& operands, const std::vector<CtTensor>& results)
        : m_frame(&frame), m_node(node), m_functions(&functions), m_operands(&operands), m_results(&results) {}

    int32_t run(Graphs kind) {
        switch (kind) {
            case Graphs::Cond: return cond();
            case Graphs::WhileLoop: return whileLoop();
            case Graphs::Map: return map();
            case Graphs::Scan: return scan();
            case Graphs::AssociativeScan: return associativeScan();
            case Graphs::Run: break;
        }
        return runOnce(0, from(0));
    }

  private:
    using Tensors = std::vector<CtTensor>;
    using Owned = std::vector<OwnTensor>;

    int32_t fail(const char* what) const { return m_frame->fail(m_node, what); }
    const Tensors& operand(size_t number) const {
        static const Tensors none;
        return number < m_operands->size() ? (*m_operands)[number] : none;
    }
    /// The tensors of this operand and all after it.
    Tensors from(size_t first) const {
        Tensors all;
        for (size_t i = first; i < m_operands->size(); ++i) append(all, operand(i));
        return all;
    }
    static void append(Tensors& all, const Tensors& more) { all.insert(all.end(), more.begin(), more.end()); }
    int32_t call(size_t function, const Tensors& inputs, Tensors& outputs) const {
        outputs.assign(m_frame->resultsOf((*m_functions)[function]), {});
        return m_frame->runFunction((*m_functions)[function], inputs.data(), outputs.data());
    }
    static Owned copies(const Tensors& tensors) {
        Owned all;
        for (const CtTensor& tensor : tensors) all.emplace_back(tensor);
        return all;
    }
    static Tensors tensorsOf(const Owned& owned) {
        Tensors all;
        for (const OwnTensor& tensor : owned) all.push_back(tensor.tensor());
        return all;
    }
    /// Copies what a graph has made into `to`, whose dtype and sizes it must have. 0 on success.
    int32_t put(const CtTensor& made, const CtTensor& to) const {
        if (to.rank < 0) return 0;
        bool same = made.dtype == to.dtype && made.rank == to.rank;
        for (int32_t d = 0; same && d < to.rank; ++d) same = made.sizes[d] == to.sizes[d];
        if (!same) return fail("a graph gives a value of another dtype or other sizes than its call's result");
        layOut(made, to.strides, static_cast<char*>(to.data));
        return 0;
    }
    int32_t give(const Tensors& made, size_t first = 0) const {
        if (made.size() > m_results->size() - first) return fail("a graph gives more values than its call has results");
        for (size_t i = 0; i < made.size(); ++i)
            if (put(made[i], (*m_results)[first + i]) != 0) return 1;
        return 0;
    }
    int32_t runOnce(size_t function, const Tensors& inputs) const {
        Tensors made;
        return call(function, inputs, made) != 0 ? 1 : give(made);
    }
    /// Any bit but the sign of a zero.
    static bool isTrue(const CtTensor& number) {
        const auto* const bytes = static_cast<const unsigned char*>(number.data);
        const auto count = static_cast<size_t>(bytesOf(number.dtype));
        const bool real =
            number.dtype == CT_F16 || number.dtype == CT_BF16 || number.dtype == CT_F32 || number.dtype == CT_F64;
        for (size_t i = 0; i < count; ++i)
            if ((bytes[i] & (real && i + 1 == count ? 0x7F : 0xFF)) != 0) return true;
        return false;
    }
    /// False, and an error, if it is not a single value.
    bool decides(const Tensors& predicate, bool& yes) const {
        bool single = predicate.size() == 1 && predicate[0].rank >= 0;
        for (int32_t d = 0; single && d < predicate[0].rank; ++d) single = predicate[0].sizes[d] == 1;
        if (!single) return fail("the predicate is not a single value") == 0;
        yes = isTrue(predicate[0]);
        return true;
    }

    int32_t cond() const {
        bool yes = false;
        return decides(operand(0), yes) ? runOnce(yes ? 0 : 1, from(1)) : 1;
    }
    int32_t whileLoop() const {
        Owned carried = copies(operand(0));
        for (;;) {
            Tensors inputs = tensorsOf(carried), made;
            append(inputs, operand(1));
            bool again = false;
            if (call(0, inputs, made) != 0 || !decides(made, again)) return 1;
            if (!again) return give(tensorsOf(carried));
            if (call(1, inputs, made) != 0) return 1;
            if (made.size() != carried.size()) return fail("the body gives another number of values than it carries");
            carried = copies(made);
        }
    }

    /// How many items the tensors have along their first dim; -1 and an error if they differ.
    int64_t itemsOf(const Tensors& tensors) const {
        bool fits = !tensors.empty();
        for (const CtTensor& tensor : tensors) fits = fits && tensor.rank > 0 && tensor.sizes[0] == tensors[0].sizes[0];
        if (fits) return tensors[0].sizes[0];
        fail("the tensors to go through differ in their first size, or there are none");
        return -1;
    }
    static CtTensor item(const CtTensor& tensor, int64_t number) {
        char* const data = static_cast<char*>(tensor.data) + number * tensor.strides[0] * bytesOf(tensor.dtype);
        return {data, tensor.dtype, tensor.rank - 1, tensor.sizes + 1, tensor.strides + 1};
    }
    static Tensors itemsAt(const Tensors& tensors, int64_t number) {
        Tensors all;
        for (const CtTensor& tensor : tensors) all.push_back(item(tensor, number));
        return all;
    }
    /// Stores what a graph has made for item `number`, from `skipped` on, into the results from `first` on. 0: done.
    int32_t giveItem(const Tensors& made, size_t skipped, size_t first, int64_t number) const {
        for (size_t i = skipped; i < made.size(); ++i) {
            if (first + i - skipped >= m_results->size())
                return fail("a graph gives more values than its call has results");
            const CtTensor& whole = (*m_results)[first + i - skipped];
            if (whole.rank == 0) return fail("a result has no dim for the items");
            if (whole.rank > 0 && put(made[i], item(whole, number)) != 0) return 1;
        }
        return 0;
    }
    int32_t map() const {
        const int64_t count = itemsOf(operand(0));
        for (int64_t i = 0; i < count; ++i) {
            Tensors inputs = itemsAt(operand(0), i), made;
            append(inputs, from(1));
            if (call(0, inputs, made) != 0 || giveItem(made, 0, 0, i) != 0) return 1;
        }
        return count < 0;
    }
    int32_t scan() const {
        Owned carry = copies(operand(0));
        const size_t carried = carry.size();
        const int64_t count = itemsOf(operand(1));
        for (int64_t i = 0; i < count; ++i) {
            Tensors inputs = tensorsOf(carry), made;
            append(inputs, itemsAt(operand(1), i));
            append(inputs, from(2));
            if (call(0, inputs, made) != 0) return 1;
            if (made.size() < carried) return fail("the graph gives fewer values than it carries");
            if (giveItem(made, carried, carried, i) != 0) return 1;
            made.resize(carried);
            carry = copies(made);
        }
        return count < 0 ? 1 : give(tensorsOf(carry));
    }
    int32_t associativeScan() const {
        const int64_t count = itemsOf(operand(0));
        Owned sum;
        for (int64_t i = 0; i < count; ++i) {
            const Tensors items = itemsAt(operand(0), i);
            Tensors inputs = tensorsOf(sum), made = items;
            append(inputs, items);
            append(inputs, from(1));
            if (i > 0 && call(0, inputs, made) != 0) return 1;
            if (giveItem(made, 0, 0, i) != 0) return 1;
            sum = copies(made);
        }
        return count < 0;
    }

    Frame* m_frame;
    const char* m_node;
    const std::vector<size_t>* m_functions;
    const std::vector<std::vector<CtTensor>>* m_operands;
    const std::vector<CtTensor>* m_results;
};

}  // namespace

int32_t Frame::graphs(Graphs kind, size_t step, const char* node, std::initializer_list<size_t> functions,
                      std::initializer_list<std::initializer_list<CtTensor>> operands,
                      std::initializer_list<CtTensor> results) {
    std::vector<CtTensor> own(results);
    for (size_t i = 0; i < own.size(); ++i)
        if (CtTensor& each = own[i]; each.rank >= 0)
            each.data = make(step, i, extentOf(each.dtype, each.rank, each.sizes, each.strides));
    const std::vector<size_t> called(functions);
    const std::vector<std::vector<CtTensor>> given(operands.begin(), operands.end());
    return GraphCall(*this, node, called, given, own).run(kind);
}

}  // namespace ct
