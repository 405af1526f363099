// Attention of halves by tensor cores: a block has 64 queries of a head and goes along its keys in tiles of 64, with
// the softmax of what it has seen so far; scores are never in memory. f32 for scores and sums, as the field's kernels
// have it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/runtime/cuda/functions.h"

namespace cutaway::cuda {
namespace {

constexpr int64_t kQueryRows = 64;
constexpr unsigned kAttentionThreads = 128;
constexpr int kHeads[] = {32, 64, 96, 128};  // sizes for which there is a program; others are filled up with zeros

constexpr const char* kAttentionText = R"(
#define ROWS 64
#define KEYS 64
#define PITCH (HEAD + 8)
struct Job {
    Strided query, key, value, bias, out, sums;
    long heads, tiles, blocks, queries, keys, sumRows;
    int size, valueSize, keyShare, valueShare, causal, hasBias, hasSums;
    float scale;
};
FN unsigned sharedAt(const void* p) {
    unsigned at;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(at) : "l"(p));
    return at;
}
FN void load4(unsigned (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAt(p)) : "memory");
}
FN void load4Turned(unsigned (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAt(p)) : "memory");
}
template <bool BF> FN void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if (BF) asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
             : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <bool BF> FN unsigned two(float low, float high) {
    unsigned r;
    if (BF) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
/// Rows of a head to shared memory, zeros where there are none. Eight elements at once where they are aligned.
FN void fill(unsigned short* tile, const unsigned short* from, long stride, long rows, int size) {
    constexpr int CHUNKS = HEAD / 8;
    for (int i = threadIdx.x; i < 64 * CHUNKS; i += 128) {
        const int row = i / CHUNKS, at = i % CHUNKS * 8;
        unsigned short* const to = tile + row * PITCH + at;
        const unsigned short* const own = from + row * stride + at;
        if (row < rows && at + 8 <= size && ((unsigned long)own & 15) == 0) {
            *(int4*)to = *(const int4*)own;
        } else {
            for (int e = 0; e < 8; ++e) to[e] = row < rows && at + e < size ? own[e] : (unsigned short)0;
        }
    }
}
FN const unsigned short* headOf(const Strided& t, long batch, long head) {
    return (const unsigned short*)t.data + batch * t.strides[0] + head * t.strides[1];
}
FN float biasAt(const Strided& t, long i) {
    return t.dtype == F32 ? ((const float*)t.data)[i]
         : t.dtype == BF16 ? rd_bf16((const unsigned short*)t.data + i) : rd_f16((const unsigned short*)t.data + i);
}
template <bool BF> FN void attendAll(const Job& job) {
    __shared__ __align__(16) unsigned short keyTile[KEYS * PITCH], valueTile[KEYS * PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = lane / 8, within = lane % 8;
    const float infinity = __int_as_float(0x7f800000), toTwo = 1.4426950408889634f;
    for (long block = blockIdx.x; block < job.blocks; block += gridDim.x) {
        const long both = block / job.tiles, tile = job.tiles - 1 - block % job.tiles, first = tile * ROWS;
        const long batch = both / job.heads, head = both % job.heads;
        __syncthreads();
        fill(keyTile, headOf(job.query, batch, head) + first * job.query.strides[2], job.query.strides[2], job.queries - first, job.size);
        __syncthreads();
        unsigned q[HEAD / 16][4];
        for (int c = 0; c < HEAD / 16; ++c)
            load4(q[c], keyTile + (warp * 16 + part % 2 * 8 + within) * PITCH + c * 16 + part / 2 * 8);
        float out[HEAD / 8][4], most[2] = {-infinity, -infinity}, total[2] = {0.f, 0.f};
        for (int c = 0; c < HEAD / 8; ++c) for (int e = 0; e < 4; ++e) out[c][e] = 0.f;
        const long row = first + warp * 16 + lane / 4;
        const unsigned short* const keys = headOf(job.key, batch, head / job.keyShare);
        const unsigned short* const values = headOf(job.value, batch, head / job.valueShare);
        const long bias = job.hasBias ? batch * job.bias.strides[0] + head * job.bias.strides[1] : 0;
        const long end = job.causal ? min(job.keys, first + ROWS) : job.keys;
        for (long begin = 0; begin < end; begin += KEYS) {
            __syncthreads();
            fill(keyTile, keys + begin * job.key.strides[2], job.key.strides[2], job.keys - begin, job.size);
            fill(valueTile, values + begin * job.value.strides[2], job.value.strides[2], job.keys - begin, job.valueSize);
            __syncthreads();
            float s[KEYS / 8][4];
            for (int n = 0; n < KEYS / 8; ++n) for (int e = 0; e < 4; ++e) s[n][e] = 0.f;
            for (int c = 0; c < HEAD / 16; ++c)
                for (int n = 0; n < KEYS / 16; ++n) {
                    unsigned b[4];
                    load4(b, keyTile + (n * 16 + part / 2 * 8 + within) * PITCH + c * 16 + part % 2 * 8);
                    multiply<BF>(s[2 * n], q[c], b[0], b[1]);
                    multiply<BF>(s[2 * n + 1], q[c], b[2], b[3]);
                }
            float largest[2] = {most[0], most[1]};
            for (int n = 0; n < KEYS / 8; ++n)
                for (int e = 0; e < 4; ++e) {
                    const long r = row + e / 2 * 8, column = begin + n * 8 + lane % 4 * 2 + e % 2;
                    float score = s[n][e] * (job.scale * toTwo);
                    if (job.hasBias && r < job.queries && column < job.keys)
                        score += biasAt(job.bias, bias + r * job.bias.strides[2] + column * job.bias.strides[3]) * toTwo;
                    if (column >= job.keys || (job.causal && column > r)) score = -infinity;
                    s[n][e] = score;
                    largest[e / 2] = fmaxf(largest[e / 2], score);
                }
            for (int h = 0; h < 2; ++h) {
                largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], 1));
                largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], 2));
                const float base = largest[h] == -infinity ? 0.f : largest[h], less = exp2f(most[h] - base);
                most[h] = largest[h];
                total[h] *= less;
                for (int c = 0; c < HEAD / 8; ++c) {
                    out[c][2 * h] *= less;
                    out[c][2 * h + 1] *= less;
                }
                for (int n = 0; n < KEYS / 8; ++n)
                    for (int e = 2 * h; e < 2 * h + 2; ++e) {
                        s[n][e] = exp2f(s[n][e] - base);
                        total[h] += s[n][e];
                    }
            }
            for (int c = 0; c < KEYS / 16; ++c) {
                const unsigned p[4] = {two<BF>(s[2 * c][0], s[2 * c][1]), two<BF>(s[2 * c][2], s[2 * c][3]),
                                       two<BF>(s[2 * c + 1][0], s[2 * c + 1][1]), two<BF>(s[2 * c + 1][2], s[2 * c + 1][3])};
                for (int d = 0; d < HEAD / 16; ++d) {
                    unsigned b[4];
                    load4Turned(b, valueTile + (c * 16 + part % 2 * 8 + within) * PITCH + d * 16 + part / 2 * 8);
                    multiply<BF>(out[2 * d], p, b[0], b[1]);
                    multiply<BF>(out[2 * d + 1], p, b[2], b[3]);
                }
            }
        }
        for (int h = 0; h < 2; ++h) {
            total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
            total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
            const long r = row + h * 8;
            if (job.hasSums && lane % 4 == 0 && r < job.sumRows)
                ((float*)job.sums.data)[batch * job.sums.strides[0] + head * job.sums.strides[1] + r * job.sums.strides[2]] =
                    r >= job.queries ? infinity : most[h] == -infinity ? -infinity : most[h] / toTwo + logf(total[h]);
            if (r >= job.queries) continue;
            const float share = total[h] == 0.f ? 0.f : 1.f / total[h];
            unsigned short* const to = (unsigned short*)headOf(job.out, batch, head) + r * job.out.strides[2];
            const bool pairs = ((unsigned long)to & 3) == 0;
            for (int c = 0; c < HEAD / 8; ++c) {
                const int at = c * 8 + lane % 4 * 2;
                const unsigned made = two<BF>(out[c][2 * h] * share, out[c][2 * h + 1] * share);
                if (pairs && at + 2 <= job.valueSize) *(unsigned*)(to + at) = made;
                else {
                    if (at < job.valueSize) to[at] = (unsigned short)made;
                    if (at + 1 < job.valueSize) to[at + 1] = (unsigned short)(made >> 16);
                }
            }
        }
    }
}
extern "C" __global__ void __launch_bounds__(128) attendBFloat(const __grid_constant__ Job job) { attendAll<true>(job); }
extern "C" __global__ void __launch_bounds__(128) attendHalf(const __grid_constant__ Job job) { attendAll<false>(job); }
)";

/// As the kernels have it.
struct AttentionJob {
    DeviceTensor query, key, value, bias, out, sums;
    int64_t heads = 0, tiles = 0, blocks = 0, queries = 0, keys = 0, sumRows = 0;
    int32_t size = 0, valueSize = 0, keyShare = 1, valueShare = 1, causal = 0, hasBias = 0, hasSums = 0;
    float scale = 1;
};

/// The program for heads of up to this size.
const Family& familyOf(int64_t size) {
    static const auto& texts = *new std::array<std::string, std::size(kHeads)>([] {
        std::array<std::string, std::size(kHeads)> made;
        for (size_t i = 0; i < made.size(); ++i)
            made[i] = "#define HEAD " + std::to_string(kHeads[i]) + "\n" + kAttentionText;
        return made;
    }());
    static const Family families[] = {{texts[0].c_str()}, {texts[1].c_str()}, {texts[2].c_str()}, {texts[3].c_str()}};
    for (size_t i = 0; i < std::size(kHeads); ++i)
        if (size <= kHeads[i]) return families[i];
    throw LibraryRefusal("heads have more than 128 elements");
}

class AttentionPlan final : public LibraryPlan {
  public:
    explicit AttentionPlan(const CtCall& call) {
        const CallReader reader(call);
        m_query = reader.operand("query").value();
        m_key = reader.operand("key").value();
        m_value = reader.operand("value").value();
        m_bias = reader.operand(reader.find("attn_mask") != nullptr ? "attn_mask" : "attn_bias").value_or(-1);
        AttentionJob& job = m_job;
        job.query = described(call.operands[m_query]);
        job.key = described(call.operands[m_key]);
        job.value = described(call.operands[m_value]);
        job.out = described(call.results[0]);
        job.hasSums = call.results[1].rank >= 0 && elementsOf(call.results[1]) > 0 ? 1 : 0;
        if (job.hasSums != 0) {
            job.sums = described(call.results[1]);
            job.sumRows = job.sums.sizes[2];
        }
        for (const DeviceTensor* each : {&job.query, &job.key, &job.value, &job.out})
            if (each->strides[3] != 1 && each->sizes[3] > 1) throw LibraryRefusal("elements of a head lie apart");
        const int64_t batch = job.query.sizes[0];
        job.heads = job.query.sizes[1];
        job.queries = job.query.sizes[2];
        job.keys = job.key.sizes[2];
        job.tiles = (std::max(job.queries, job.sumRows) + kQueryRows - 1) / kQueryRows;
        job.blocks = batch * job.heads * job.tiles;
        job.size = static_cast<int32_t>(job.query.sizes[3]);
        job.valueSize = static_cast<int32_t>(job.value.sizes[3]);
        job.keyShare = static_cast<int32_t>(job.heads / std::max<int64_t>(job.key.sizes[1], 1));
        job.valueShare = static_cast<int32_t>(job.heads / std::max<int64_t>(job.value.sizes[1], 1));
        job.causal = reader.flag("is_causal") ? 1 : 0;
        job.scale = static_cast<float>(reader.real("scale").value_or(1 / std::sqrt(static_cast<double>(job.size))));
        if (m_bias >= 0) {
            DeviceTensor like = job.query;
            like.sizes[3] = job.keys;
            job.bias = broadcastTo(described(call.operands[m_bias]), like);
            job.hasBias = 1;
        }
        m_family = &familyOf(std::max(job.size, job.valueSize));
    }
    void run(const LibraryRun& given) const override {
        AttentionJob job = m_job;
        job.query.data = given.operands[m_query].data;
        job.key.data = given.operands[m_key].data;
        job.value.data = given.operands[m_value].data;
        if (m_bias >= 0) job.bias.data = given.operands[m_bias].data;
        job.out.data = given.results[0].data;
        if (job.hasSums != 0) job.sums.data = given.results[1].data;
        Launcher(*m_family, given)
            .blocks(job.query.dtype == CT_BF16 ? "attendBFloat" : "attendHalf", job.blocks, kAttentionThreads, job);
    }

  private:
    AttentionJob m_job;
    const Family* m_family = nullptr;
    int m_query = 0, m_key = 0, m_value = 0, m_bias = -1;
};

constexpr std::string_view kAttentionOps[] = {
    "aten._scaled_dot_product_flash_attention_for_cpu.default",
    "aten._scaled_dot_product_efficient_attention.default",
    "aten._scaled_dot_product_flash_attention.default",
    "aten._scaled_dot_product_cudnn_attention.default",
};

}  // namespace

const Family* attentionFamily() { return &familyOf(kHeads[std::size(kHeads) - 1]); }

std::unique_ptr<LibraryPlan> planAttention(const CtCall& call, CtNeeds&) {
    if (std::find(std::begin(kAttentionOps), std::end(kAttentionOps), std::string_view(call.op)) ==
        std::end(kAttentionOps))
        return nullptr;
    return std::make_unique<AttentionPlan>(call);
}

}  // namespace cutaway::cuda
