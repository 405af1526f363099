#include "tests/support/argument_mutations.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/support/random.h"
#include "tests/support/op_samples.h"

namespace cutaway::testing {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kIntegers[] = {kLeast,
                                 kLeast + 1,
                                 -(int64_t{1} << 40),
                                 -(int64_t{1} << 32),
                                 -(int64_t{1} << 31) - 1,
                                 -(int64_t{1} << 31),
                                 -1000,
                                 -7,
                                 -5,
                                 -4,
                                 -3,
                                 -2,
                                 -1,
                                 -1,
                                 0,
                                 0,
                                 0,
                                 1,
                                 1,
                                 2,
                                 2,
                                 3,
                                 4,
                                 5,
                                 6,
                                 7,
                                 8,
                                 9,
                                 12,
                                 16,
                                 31,
                                 32,
                                 33,
                                 63,
                                 64,
                                 65,
                                 100,
                                 255,
                                 256,
                                 1000,
                                 65536,
                                 100000,
                                 (int64_t{1} << 31) - 1,
                                 int64_t{1} << 31,
                                 int64_t{1} << 32,
                                 int64_t{1} << 40,
                                 int64_t{1} << 61,
                                 int64_t{1} << 62,
                                 kMost - 1,
                                 kMost};
constexpr const char* kReals[] = {"0.0",   "-0.0",  "1.0",    "-1.0", "0.5",  "2.5", "-2.5",   "1e-30", "1e30",
                                  "-1e30", "1e300", "-1e300", "inf",  "-inf", "nan", "9.3e18", "1e-320"};
constexpr const char* kWords[] = {
    "''",       "'abc'",     "'mean'",        "'sum'",       "'none'",     "'tanh'",     "'floor'",
    "'trunc'",  "'reflect'", "'replicate'",   "'constant'",  "'circular'", "'bilinear'", "'nearest'",
    "'linear'", "'fro'",     "'nuc'",         "'inf'",       "'amax'",     "'amin'",     "'prod'",
    "'ortho'",  "'forward'", "'backward'",    "'ij'",        "'xy'",       "'left'",     "'right'",
    "'valid'",  "'same'",    "'...ij,...jk'", "'ij,jk->ik'", "'ii->i'",    "'->'",       "','"};
constexpr const char* kDTypes[] = {"u8",   "i8", "i16",  "i32", "i64", "f16", "f32", "f64",      "c64",
                                   "c128", "b8", "bf16", "u16", "u32", "u64", "c32", "f8e4m3fn", "f8e5m2"};
constexpr const char* kTorchDTypes[] = {
    "torch.uint8",   "torch.int8",    "torch.int16",     "torch.int32",        "torch.int64", "torch.float16",
    "torch.float32", "torch.float64", "torch.complex64", "torch.complex128",   "torch.bool",  "torch.bfloat16",
    "torch.uint16",  "torch.uint64",  "torch.complex32", "torch.float8_e4m3fn"};
constexpr const char* kFormats[] = {"torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d",
                                    "torch.preserve_format",   "torch.strided",       "torch.sparse_coo"};
constexpr const char* kDevices[] = {"device(type='cpu')", "device(type='cuda')", "device(type='meta')"};
constexpr const char* kDraws[] = {"", "?", "?", "<1", "<3", "<100", ">0", "!", "%"};

class Mutator {
  public:
    Mutator(const Op& op, std::vector<CallItem> items, uint64_t seed)
        : m_op(op), m_items(std::move(items)), m_random(seed) {}

    std::string mutated() {
        const uint64_t dice = m_random.below(100);
        int changes = 1;
        for (const auto& [least, count] : {std::pair{55u, 2}, {80u, 3}, {92u, 5}})
            if (dice >= least) changes = count;
        for (int i = 0; i < changes; ++i) change();
        return printItems(m_items);
    }

  private:
    uint64_t below(uint64_t bound) { return m_random.below(bound); }
    template <class T, size_t N>
    const T& any(const T (&from)[N]) {
        return from[below(N)];
    }

    /// Everything that can be changed, the items of lists included.
    void collect(std::vector<CallItem>& from, std::vector<CallItem*>& into) {
        for (CallItem& item : from) {
            into.push_back(&item);
            collect(item.items, into);
        }
    }
    void change() {
        if (m_items.empty() || below(12) == 0) return structure();
        std::vector<CallItem*> all;
        collect(m_items, all);
        CallItem& item = *all[below(all.size())];
        switch (item.kind) {
            case CallItem::Kind::Tensor: return changeTensor(item);
            case CallItem::Kind::List: return changeList(item);
            case CallItem::Kind::Word: return changeWord(item);
        }
    }

    /// An argument more, one less, another order, or a parameter that the sample leaves out.
    void structure() {
        const auto& params = m_op.schema()->params;
        const uint64_t choice = below(6);
        if (choice == 0 && !m_items.empty())
            m_items.erase(m_items.begin() + static_cast<std::ptrdiff_t>(below(m_items.size())));
        else if (choice == 1 && m_items.size() >= 2) {
            CallItem &a = m_items[below(m_items.size())], &b = m_items[below(m_items.size())];
            std::swap(a, b);
            std::swap(a.keyword, b.keyword);
        } else if (!params.empty()) {
            const size_t at = below(params.size());
            if (at < m_items.size()) return changeKind(m_items[at]);
            const Param& param = params[at];
            for (const CallItem& item : m_items)
                if (item.keyword == param.name) return;
            CallItem item = fitting(param);
            item.keyword = param.name;
            m_items.push_back(std::move(item));
        }
    }
    CallItem fitting(const Param& param) {
        CallItem item;
        const uint64_t count = param.list ? below(5) : 1;
        for (uint64_t i = 0; i < count; ++i) {
            CallItem one;
            switch (param.kind) {
                case ParamKind::Tensor: one = tensor(); break;
                case ParamKind::Int: one.word = std::to_string(any(kIntegers)); break;
                case ParamKind::Float: one.word = any(kReals); break;
                case ParamKind::Bool: one.word = below(2) ? "True" : "False"; break;
                case ParamKind::Number: one.word = below(2) ? std::to_string(any(kIntegers)) : any(kReals); break;
                case ParamKind::String: one.word = any(kWords); break;
                case ParamKind::DType: one.word = any(kTorchDTypes); break;
                case ParamKind::Layout:
                case ParamKind::MemoryFormat: one.word = any(kFormats); break;
                case ParamKind::Device: one.word = any(kDevices); break;
                case ParamKind::Generator:
                case ParamKind::Any: one.word = "None"; break;
            }
            if (!param.list) return one;
            item.items.push_back(std::move(one));
        }
        item.kind = CallItem::Kind::List;
        return item;
    }
    CallItem tensor() {
        CallItem item;
        item.kind = CallItem::Kind::Tensor;
        item.word = any(kDTypes);
        for (uint64_t rank = below(4); rank > 0; --rank) item.sizes.push_back(static_cast<int64_t>(below(5)));
        item.draw = any(kDraws);
        return item;
    }
    /// Something of another kind in its place.
    void changeKind(CallItem& item) {
        const std::string keyword = item.keyword;
        CallItem other;
        switch (below(10)) {
            case 0:
            case 1: other.word = "None"; break;
            case 2: other.word = std::to_string(any(kIntegers)); break;
            case 3: other.word = any(kReals); break;
            case 4: other.word = below(2) ? "True" : "False"; break;
            case 5: other = tensor(); break;
            case 6:
                other.kind = CallItem::Kind::List;
                for (uint64_t i = below(4); i > 0; --i) other.items.push_back(item);
                for (CallItem& one : other.items) one.keyword.clear();
                break;
            case 7: other.word = any(kWords); break;
            case 8: other.word = below(2) ? "2j" : any(kTorchDTypes); break;
            default: other.word = "$0"; break;
        }
        item = std::move(other);
        item.keyword = keyword;
    }
    void changeWord(CallItem& item) {
        if (below(6) == 0) return changeKind(item);
        int64_t number = 0;
        const auto [end, error] = std::from_chars(item.word.data(), item.word.data() + item.word.size(), number);
        if (error == std::errc() && end == item.word.data() + item.word.size()) {
            const auto wrapped = static_cast<uint64_t>(number);
            const uint64_t near[] = {wrapped + 1, wrapped - 1, uint64_t{0} - wrapped, wrapped * 2, wrapped + 100};
            item.word = std::to_string(below(3) ? any(kIntegers) : static_cast<int64_t>(any(near)));
        } else if (item.word == "True" || item.word == "False") {
            item.word = item.word == "True" ? "False" : "True";
        } else if (item.word.starts_with('\'') || item.word.starts_with('"')) {
            item.word = any(kWords);
        } else if (item.word.starts_with("device")) {
            item.word = any(kDevices);
        } else if (dtypeFromTorchName(item.word)) {
            item.word = any(kTorchDTypes);
        } else if (item.word.starts_with("torch.")) {
            item.word = any(kFormats);
        } else if (item.word == "None") {
            changeKind(item);
        } else {
            item.word = any(kReals);
        }
    }
    void changeList(CallItem& list) {
        auto& items = list.items;
        switch (below(8)) {
            case 0: items.clear(); break;
            case 1:
                if (!items.empty()) items.pop_back();
                break;
            case 2:
                if (!items.empty()) items.erase(items.begin());
                break;
            case 3:
                if (!items.empty()) items.push_back(items[below(items.size())]);
                break;
            case 4:
                if (!items.empty())
                    for (const uint64_t count = below(2) ? 3 : 70; items.size() < count;) items.push_back(items[0]);
                break;
            case 5: std::reverse(items.begin(), items.end()); break;
            case 6: {
                CallItem one;
                one.word = std::to_string(any(kIntegers));
                items.push_back(std::move(one));
                break;
            }
            default: changeKind(list); break;
        }
    }
    void changeTensor(CallItem& item) {
        switch (below(9)) {
            case 0: changeKind(item); break;
            case 1: item.word = any(kDTypes); break;
            case 2: item.draw = any(kDraws); break;
            case 3: changeRank(item); break;
            case 4:
            case 5: changeSize(item); break;
            default: changeStrides(item); break;
        }
    }
    void changeRank(CallItem& item) {
        if (item.strided) item.strided = false;
        switch (below(5)) {
            case 0: item.sizes.clear(); break;
            case 1:
                if (!item.sizes.empty()) item.sizes.pop_back();
                break;
            case 2:
                if (!item.sizes.empty()) item.sizes.erase(item.sizes.begin());
                break;
            case 3: item.sizes.push_back(static_cast<int64_t>(below(4))); break;
            default: item.sizes.insert(item.sizes.begin(), static_cast<int64_t>(below(4))); break;
        }
    }
    void changeSize(CallItem& item) {
        if (item.sizes.empty()) return changeRank(item);
        constexpr int64_t kSizes[] = {0, 0, 0, 1, 1, 2, 3, 5, 17, 65};
        int64_t& size = item.sizes[below(item.sizes.size())];
        size = below(60) == 0 ? (below(2) ? int64_t{1} << 40 : kMost)
               : below(3)     ? any(kSizes)
               : below(2)     ? size + (size < kMost)
                              : std::max<int64_t>(size - 1, 0);
        item.strided = false;
    }
    /// Transposed, with gaps, repeated elements, or elements that overlap.
    void changeStrides(CallItem& item) {
        const size_t rank = item.sizes.size();
        if (rank == 0) return changeRank(item);
        item.strided = true;
        item.strides.assign(rank, 1);
        std::vector<size_t> order(rank);
        for (size_t d = 0; d < rank; ++d) order[d] = rank - 1 - d;
        if (below(2)) std::swap(order[below(rank)], order[below(rank)]);
        int64_t step = below(4) ? 1 : 2;
        for (size_t d : order) {
            item.strides[d] = step;
            if (item.sizes[d] > 0 && item.sizes[d] < 1000 && step < 100000) step *= item.sizes[d];
            if (below(8) == 0) step += 1;
        }
        switch (below(4)) {
            case 0: item.strides[below(rank)] = 0; break;
            case 1: std::fill(item.strides.begin(), item.strides.end(), 0); break;
            case 2: item.strides[below(rank)] = 1; break;
            default: break;
        }
    }

    const Op& m_op;
    std::vector<CallItem> m_items;
    Random m_random;
};

}  // namespace

ArgumentMutations::ArgumentMutations(std::string_view only) {
    for (const Op* op : allOps()) {
        if (op->name().find(only) == std::string::npos) continue;
        for (const OpSample& sample : samplesOf(op->functional() ? *op->functional() : *op))
            m_samples.push_back({op, sample.text});
    }
}

CallText ArgumentMutations::at(uint64_t seed) const {
    Random random(seed);
    const CallText& sample = m_samples[random.below(m_samples.size())];
    return {sample.op, Mutator(*sample.op, parseItems(sample.arguments), random.next()).mutated()};
}

}  // namespace cutaway::testing
