// Each row of the library table against the pure interpreter: shapes, dtypes, layouts, masks; the same bits whatever
// the number of threads where the code is ours; one plan run by ten threads at once; refusals as sentences.
#include <QtTest>
#include <atomic>
#include <set>
#include <thread>

#include "engine/interpret/interpret.h"
#include "engine/libraries/choose.h"
#include "engine/runtime/libraries/table.h"
#include "tests/engine/library_call.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

#define FLASH "aten._scaled_dot_product_flash_attention_for_cpu.default"
#define FLASH_BACKWARD "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
#define CONVOLUTION "mkldnn._convolution_pointwise"
#define EFFICIENT "aten._scaled_dot_product_efficient_attention.default"
#define EFFICIENT_BACKWARD "aten._scaled_dot_product_efficient_attention_backward.default"

struct Row {
    const char* name;
    const char* inputs;  // an input called `hidden` has minus infinity for its negative numbers and all of row 0
    const char* call;
    int results = 1;      // of a tuple
    double error = 2e-5;  // of the largest number expected
};

constexpr Row kServed[] = {
    {"attention", "q f32[2, 3, 40, 16]; k f32[2, 3, 40, 16]; v f32[2, 3, 40, 16]", FLASH "(q, k, v)", 2},
    {"one query", "q f32[1, 2, 1, 8]; k f32[1, 2, 700, 8]; v f32[1, 2, 700, 8]", FLASH "(q, k, v)", 2},
    {"several tiles", "q f32[1, 2, 300, 24]; k f32[1, 2, 1100, 24]; v f32[1, 2, 1100, 24]", FLASH "(q, k, v)", 2},
    {"causal", "q f32[1, 2, 300, 8]; k f32[1, 2, 600, 8]; v f32[1, 2, 600, 8]", FLASH "(q, k, v, 0.0, True)", 2},
    {"causal, fewer keys", "q f32[1, 1, 200, 8]; k f32[1, 1, 7, 8]; v f32[1, 1, 7, 8]", FLASH "(q, k, v, 0.0, True)",
     2},
    {"heads behind the length",
     "q f32[2, 3, 33, 16][1584, 16, 48, 1]; k f32[2, 3, 17, 16][816, 16, 48, 1]; v f32[2, 3, 17, 16][816, 16, 48, 1]",
     FLASH "(q, k, v)", 2},
    {"rows that are columns", "q f32[1, 2, 9, 8][144, 72, 1, 9]; k f32[1, 2, 5, 8][80, 40, 1, 5]; v f32[1, 2, 5, 8]",
     FLASH "(q, k, v)", 2},
    {"shared key heads", "q f32[2, 6, 20, 8]; k f32[2, 2, 21, 8]; v f32[2, 2, 21, 8]", FLASH "(q, k, v)", 2},
    {"a scale, a mask for all heads", "q f32[2, 3, 20, 8]; k f32[2, 3, 530, 8]; v f32[2, 3, 530, 8]; m f32[20, 530]",
     FLASH "(q, k, v, attn_mask=m, scale=0.3)", 2},
    {"a mask over keys", "q f32[2, 3, 20, 8]; k f32[2, 3, 30, 8]; v f32[2, 3, 30, 8]; m f32[2, 1, 1, 30]",
     FLASH "(q, k, v, attn_mask=m)", 2},
    {"a mask of one column", "q f32[2, 3, 20, 8]; k f32[2, 3, 30, 8]; v f32[2, 3, 30, 8]; m f32[2, 3, 20, 1]",
     FLASH "(q, k, v, attn_mask=m)", 2},
    {"hidden keys and rows", "q f32[2, 3, 20, 8]; k f32[2, 3, 530, 8]; v f32[2, 3, 530, 8]; hidden f32[20, 530]",
     FLASH "(q, k, v, attn_mask=hidden)", 2},
    {"bfloat16", "q bf16[2, 3, 40, 16]; k bf16[2, 3, 50, 16]; v bf16[2, 3, 50, 16]; m bf16[40, 50]",
     FLASH "(q, k, v, attn_mask=m)", 2, 8e-3},
    {"float16, causal", "q f16[1, 4, 150, 16]; k f16[1, 2, 150, 16]; v f16[1, 2, 150, 16]",
     FLASH "(q, k, v, 0.0, True)", 2, 1e-3},
    {"efficient attention", "q f32[2, 3, 40, 16]; k f32[2, 3, 50, 16]; v f32[2, 3, 50, 24]; m f32[2, 3, 40, 50]",
     EFFICIENT "(q, k, v, m, True)", 4},
    {"efficient attention without sums", "q f32[2, 3, 40, 16]; k f32[2, 3, 50, 16]; v f32[2, 3, 50, 24]",
     EFFICIENT "(q, k, v, None, False)", 4},
    {"gradients of attention",
     "g f32[2, 3, 40, 16]; q f32[2, 3, 40, 16]; k f32[2, 3, 50, 16]; v f32[2, 3, 50, 16]; o f32[2, 3, 40, 16]; "
     "l f32[2, 3, 40]",
     FLASH_BACKWARD "(g, q, k, v, o, l, 0.0, False)", 3},
    {"gradients, several tiles, a mask",
     "g f32[1, 2, 260, 8]; q f32[1, 2, 260, 8]; k f32[1, 2, 700, 8]; v f32[1, 2, 700, 8]; o f32[1, 2, 260, 8]; "
     "l f32[1, 2, 260]; m f32[260, 700]",
     FLASH_BACKWARD "(g, q, k, v, o, l, 0.0, False, attn_mask=m, scale=0.2)", 3},
    {"gradients, causal, shared key heads",
     "g f32[1, 4, 150, 8]; q f32[1, 4, 150, 8]; k f32[1, 2, 150, 8]; v f32[1, 2, 150, 8]; o f32[1, 4, 150, 8]; "
     "l f32[1, 4, 150][600, 1, 4]",
     FLASH_BACKWARD "(g, q, k, v, o, l, 0.0, True)", 3},
    {"gradients, a row that saw nothing",
     "g f32[1, 2, 20, 8]; q f32[1, 2, 20, 8]; k f32[1, 2, 30, 8]; v f32[1, 2, 30, 8]; o f32[1, 2, 20, 8]; "
     "hidden f32[1, 2, 20]",
     FLASH_BACKWARD "(g, q, k, v, o, hidden, 0.0, False)", 3},
    {"attention's gradients in bfloat16",
     "g bf16[1, 2, 40, 8]; q bf16[1, 2, 40, 8][640, 8, 16, 1]; k bf16[1, 2, 30, 8]; v bf16[1, 2, 30, 8]; "
     "o bf16[1, 2, 40, 8]; l f32[1, 2, 40]",
     FLASH_BACKWARD "(g, q, k, v, o, l, 0.0, False)", 3, 8e-3},
    {"gradients of efficient attention",
     "g f32[2, 3, 40, 24]; q f32[2, 3, 40, 16]; k f32[2, 3, 50, 16]; v f32[2, 3, 50, 24]; o f32[2, 3, 40, 24]; "
     "l f32[2, 3, 64]; s i64[]; p i64[]",
     EFFICIENT_BACKWARD "(g, q, k, v, None, o, l, s, p, 0.0, [True, True, True, False])", 4},
    {"many parts", "a i64[2, 3]; b i64[2, 1]; c i64[2, 4]", "aten.cat.default([a, b, c, a, b, c], 1)"},
    {"mm", "a f32[33, 20]; b f32[20, 17]", "aten.mm.default(a, b)"},
    {"mm of transposed matrices", "a f32[33, 20][1, 33]; b f32[20, 17][1, 20]", "aten.mm.default(a, b)"},
    {"bmm", "a f32[3, 33, 20]; b f32[3, 20, 17]", "aten.bmm.default(a, b)"},
    {"addmm", "c f32[17]; a f32[33, 20]; b f32[20, 17]", "aten.addmm.default(c, a, b)"},
    {"addmm, factors", "c f32[33, 17]; a f32[33, 20]; b f32[20, 17]", "aten.addmm.default(c, a, b, beta=3, alpha=0.5)"},
    {"mm of rows that overlap", "a f32[33, 20][3, 1]; b f32[20, 17][1, 1]", "aten.mm.default(a, b)"},
    {"baddbmm, matrices that repeat of rows that overlap",
     "c f32[3, 33, 17][0, 1, 1]; a f32[3, 33, 20]; b f32[3, 20, 17]", "aten.baddbmm.default(c, a, b)"},
    {"baddbmm, a matrix for all", "c f32[33, 17]; a f32[3, 33, 20]; b f32[3, 20, 17]", "aten.baddbmm.default(c, a, b)"},
    {"baddbmm, a column, factors", "c f32[3, 33, 1]; a f32[3, 33, 20]; b f32[3, 20, 17]",
     "aten.baddbmm.default(c, a, b, beta=3, alpha=0.5)"},
    {"baddbmm, a number for each matrix", "c f32[3, 1, 1]; a f32[3, 33, 20]; b f32[3, 20, 17]",
     "aten.baddbmm.default(c, a, b)"},
    {"baddbmm, a row for each matrix in bfloat16", "c bf16[3, 1, 17]; a bf16[3, 33, 20]; b bf16[3, 20, 17]",
     "aten.baddbmm.default(c, a, b)", 1, 8e-3},
    {"addmm, a column", "c f32[33, 1]; a f32[33, 20]; b f32[20, 17]", "aten.addmm.default(c, a, b)"},
    {"a layer, and a column", "a f32[33, 20]; o f32[33, 1]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')"},
    {"mm in bfloat16", "a bf16[33, 20]; b bf16[20, 17]", "aten.mm.default(a, b)", 1, 8e-3},
    {"mm in float16", "a f16[33, 20]; b f16[20, 17]", "aten.mm.default(a, b)", 1, 1e-3},
    {"mm in float16, parts of wider matrices", "a f16[33, 20][50, 2]; b f16[20, 17][1, 31]", "aten.mm.default(a, b)", 1,
     1e-3},
    {"bmm in bfloat16", "a bf16[3, 33, 20]; b bf16[3, 20, 17]", "aten.bmm.default(a, b)", 1, 8e-3},
    {"bmm in float16", "a f16[3, 33, 20]; b f16[3, 20, 17]", "aten.bmm.default(a, b)", 1, 1e-3},
    {"addmm in bfloat16", "c bf16[17]; a bf16[33, 20]; b bf16[20, 17]", "aten.addmm.default(c, a, b)", 1, 8e-3},
    {"addmm in float16", "c f16[17]; a f16[33, 20]; b f16[20, 17]", "aten.addmm.default(c, a, b)", 1, 1e-3},
    {"a layer with one bias for all, and a function", "a f32[33, 20]; w f32[17, 20]; b f32[]",
     "mkldnn._linear_pointwise.default(a, w, b, 'relu', [], '')"},
    {"a layer with a bias that repeats, and a function", "a f32[33, 20]; w f32[17, 20]; b f32[17][0]",
     "mkldnn._linear_pointwise.default(a, w, b, 'gelu', [], 'none')"},
    {"a layer with one bias for all, and another operand", "a f32[33, 20]; o f32[33, 17]; w f32[17, 20]; b f32[]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')"},
    {"a layer, and matrices that repeat", "a f32[2, 3, 20]; o f32[1, 3, 17]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')"},
    {"a layer, and rows that repeat", "a f32[2, 3, 20]; o f32[2, 1, 17]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'add')"},
    {"a layer, and columns of some dims", "a f32[2, 3, 20]; o f32[1, 3, 1]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'sub')"},
    {"a layer, and a single number", "a f32[2, 3, 20]; o f32[1, 1, 1]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')"},
    {"a layer in float16, and matrices that repeat", "a f16[2, 3, 20]; o f16[1, 3, 17]; w f16[17, 20]; b f16[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')", 1, 2e-3},
    {"a layer of rows at unequal distances, and such rows",
     "a f32[2, 3, 20][20, 40, 1]; o f32[2, 3, 17][17, 34, 1]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'add')"},
    {"a layer of transposed matrices", "a f32[2, 3, 20][60, 1, 3]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.default(a, w, b, 'relu', [], '')"},
    {"a layer clipped between bounds that cross", "a f32[33, 20]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.default(a, w, b, 'hardtanh', [3, 1.5], '')"},
    {"a layer whose bias is a matrix", "a f32[2, 3, 20][61, 20, 1]; o f32[2, 3, 17]; w f32[17, 20]; b f32[3, 17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')"},
    {"a layer, and a row with gaps", "a f32[33, 20]; o f32[1, 17][40, 2]; w f32[17, 20]; b f32[17]",
     "mkldnn._linear_pointwise.binary(a, o, w, b, 'mul')"},
    {"mm over no columns", "a f32[33, 0]; b f32[0, 17]", "aten.mm.default(a, b)"},
    {"addmm over no columns", "c f32[17]; a f32[33, 0]; b f32[0, 17]", "aten.addmm.default(c, a, b, beta=3)"},
    {"bmm over no columns", "a bf16[2, 33, 0]; b bf16[2, 0, 17]", "aten.bmm.default(a, b)"},
    {"addmm of no rows", "c f32[17]; a f32[0, 20]; b f32[20, 17]", "aten.addmm.default(c, a, b)"},
    {"bmm of repeated matrices", "a f32[3, 33, 20][0, 20, 1]; b f32[3, 20, 17][340, 0, 1]", "aten.bmm.default(a, b)"},
    {"bmm of repeated matrices in float16", "a f16[3, 33, 20][660, 20, 1]; b f16[3, 20, 17][0, 1, 20]",
     "aten.bmm.default(a, b)", 1, 1e-3},
    {"addmm in bfloat16, factors", "c bf16[33, 17]; a bf16[33, 20]; b bf16[20, 17]",
     "aten.addmm.default(c, a, b, beta=3, alpha=0.5)", 1, 8e-3},
    {"baddbmm", "c f32[3, 33, 17]; a f32[3, 33, 20]; b f32[3, 20, 17]", "aten.baddbmm.default(c, a, b)"},
    {"baddbmm, one row for all", "c f32[17]; a f32[3, 33, 20]; b f32[3, 20, 17]",
     "aten.baddbmm.default(c, a, b, beta=0.5, alpha=2)"},
    {"baddbmm, one number", "c f32[1]; a f32[3, 33, 20]; b f32[3, 20, 17]", "aten.baddbmm.default(c, a, b, beta=0)"},
    {"convolution", "x f32[2, 6, 12, 11]; w f32[8, 6, 3, 3]; b f32[8]",
     "aten.convolution.default(x, w, b, [2, 1], [1, 1], [1, 2], False, [0, 0], 1)"},
    {"convolution in groups, of one dim", "x f32[2, 6, 30]; w f32[9, 2, 5]",
     "aten.convolution.default(x, w, None, [1], [2], [1], False, [0], 3)"},
    {"convolution of three dims, by channel", "x f32[2, 6, 7, 8, 9]; w f32[6, 1, 3, 3, 3]; b f32[6]",
     "aten.convolution.default(x, w, b, [1, 1, 1], [1, 1, 1], [1, 1, 1], False, [0, 0, 0], 6)"},
    {"convolution, channels last", "x f32[2, 6, 12, 11][792, 1, 66, 6]; w f32[8, 6, 3, 3][54, 1, 18, 6]; b f32[8]",
     "aten.convolution.default(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)"},
    {"convolution in bfloat16", "x bf16[2, 16, 12, 11]; w bf16[8, 16, 3, 3]; b bf16[8]",
     "aten.convolution.default(x, w, b, [2, 1], [1, 1], [1, 2], False, [0, 0], 1)", 1, 8e-3},
    {"convolution of repeated channels",
     "x f32[2, 16, 12, 11][132, 0, 11, 1]; w f32[8, 16, 3, 3][9, 0, 3, 1]; b f32[8][0]",
     "aten.convolution.default(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)"},
    {"convolution in float16", "x f16[2, 16, 12, 11]; w f16[8, 16, 3, 3]; b f16[8]",
     "aten.convolution.default(x, w, b, [2, 1], [1, 1], [1, 2], False, [0, 0], 1)", 1, 1e-3},
    {"transposed convolution", "x f32[2, 6, 12, 11]; w f32[6, 8, 3, 3]; b f32[8]",
     "aten.convolution.default(x, w, b, [2, 1], [1, 1], [1, 2], True, [1, 0], 1)"},
    {"transposed convolution in groups, of one dim", "x f32[2, 6, 12]; w f32[6, 2, 5]",
     "aten.convolution.default(x, w, None, [3], [1], [2], True, [2], 3)"},
    {"transposed convolution of three dims", "x f32[1, 4, 5, 4, 3]; w f32[4, 3, 2, 3, 2]; b f32[3]",
     "aten.convolution.default(x, w, b, [2, 2, 2], [0, 1, 0], [1, 1, 1], True, [0, 1, 0], 1)"},
    {"a packed convolution and a sum", "x f32[2, 16, 12, 12]; o f32[2, 24, 12, 12]; w f32[24, 16, 3, 3]; b f32[24]",
     CONVOLUTION ".binary(x, o, w, b, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')"},
    {"a packed convolution by channel and a sum, channels last",
     "x f32[2, 16, 12, 12][2304, 1, 192, 16]; o f32[2, 16, 12, 12][2304, 1, 192, 16]; w f32[16, 1, 3, 3]; b f32[16]",
     CONVOLUTION ".binary(x, o, w, b, [1, 1], [1, 1], [1, 1], 16, 'add', 1.0, 'relu', [], '')"},
    {"a packed convolution and a sum with what lies otherwise",
     "x f32[2, 16, 12, 12]; o f32[2, 24, 12, 12][3456, 1, 288, 24]; w f32[24, 16, 1, 1]",
     CONVOLUTION ".binary(x, o, w, None, [0, 0], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')"},
    {"a packed convolution and a sum with what repeats",
     "x f32[2, 16, 12, 12]; o f32[2, 24, 12, 12][0, 0, 12, 1]; w f32[24, 16, 1, 1]",
     CONVOLUTION ".binary(x, o, w, None, [0, 0], [1, 1], [1, 1], 1, 'add', 1.0, None, [], None)"},
    {"a packed convolution and a sum with a number for each channel",
     "x f32[2, 16, 12, 12]; o f32[1, 24, 1, 1]; w f32[24, 16, 3, 3]",
     CONVOLUTION ".binary(x, o, w, None, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')"},
    {"a packed convolution and a sum with a number for each place",
     "x f32[2, 16, 12, 12]; o f32[2, 1, 12, 12]; w f32[24, 16, 3, 3]",
     CONVOLUTION ".binary(x, o, w, None, [1, 1], [1, 1], [1, 1], 1, 'sub', 1.0, None, [], None)"},
    {"a packed convolution and a difference", "x f32[2, 16, 12, 12]; o f32[2, 24, 6, 6]; w f32[24, 4, 3, 3]; b f32[24]",
     CONVOLUTION ".binary(x, o, w, b, [1, 1], [2, 2], [1, 1], 4, 'sub', 1.0, 'relu', [], '')"},
    {"a packed convolution and a product, channels last",
     "x f32[2, 16, 12, 12][2304, 1, 192, 16]; o f32[2, 24, 12, 12][3456, 1, 288, 24]; w f32[24, 16, 1, 1]",
     CONVOLUTION ".binary(x, o, w, None, [0, 0], [1, 1], [1, 1], 1, 'mul', 1.0, None, [], None)"},
    {"a packed convolution of three dims and a sum",
     "x f32[1, 16, 5, 6, 7]; o f32[1, 8, 5, 6, 7]; w f32[8, 16, 3, 3, 3]",
     CONVOLUTION ".binary(x, o, w, None, [1, 1, 1], [1, 1, 1], [1, 1, 1], 1, 'add', 1.0, 'relu', [], '')"},
    {"a packed convolution of windows in the padding, and a sum",
     "x f32[1, 2, 4, 4, 4]; o f32[1, 3, 3, 3, 3]; w f32[3, 2, 2, 2, 2]; b f32[3]",
     CONVOLUTION ".binary(x, o, w, b, [0, 100, 0], [1, 101, 1], [1, 1, 1], 1, 'add', 1.0, None, [], None)"},
    {"a packed convolution clipped below", "x f32[2, 16, 12, 12]; w f32[24, 16, 3, 3]; b f32[24]",
     CONVOLUTION ".default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'relu', [], '')"},
    {"a packed convolution clipped", "x f32[2, 3, 13, 12]; w f32[10, 3, 3, 3]; b f32[10]",
     CONVOLUTION ".default(x, w, b, [1, 1], [2, 2], [1, 1], 1, 'hardtanh', [-0.5, 0.75], '')"},
    {"a packed convolution by channel, clipped, channels last",
     "x f32[2, 16, 12, 12][2304, 1, 192, 16]; w f32[16, 1, 3, 3]",
     CONVOLUTION ".default(x, w, None, [1, 1], [1, 1], [1, 1], 16, 'hardtanh', [0, 6], '')"},
    {"a packed convolution and a hard sigmoid", "x f32[2, 16, 12, 12]; w f32[24, 16, 1, 1]",
     CONVOLUTION ".default(x, w, None, [0, 0], [1, 1], [1, 1], 1, 'hardsigmoid', [], '')"},
    {"a packed convolution in bfloat16, clipped", "x bf16[2, 16, 12, 12]; w bf16[24, 16, 3, 3]; b bf16[24]",
     CONVOLUTION ".default(x, w, b, [1, 1], [1, 1], [1, 1], 1, 'hardtanh', [-0.3, 0.7], '')", 1, 1.2e-2},
    {"a packed transposed convolution, clipped", "x f32[2, 6, 12, 11]; w f32[6, 8, 3, 3]; b f32[8]",
     "mkldnn._convolution_transpose_pointwise.default(x, w, b, [1, 1], [1, 0], [2, 1], [1, 2], 1, 'hardtanh', [-1, 1], "
     "'')"},
    {"a layer in bfloat16, clipped below", "a bf16[33, 20]; w bf16[17, 20]; b bf16[17]",
     "mkldnn._linear_pointwise.default(a, w, b, 'relu', [], '')", 1, 8e-3},
    {"a layer in bfloat16, clipped", "a bf16[2, 33, 20]; w bf16[17, 20]; b bf16[17]",
     "mkldnn._linear_pointwise.default(a, w, b, 'hardtanh', [0, 0.7], '')", 1, 8e-3},
    {"a convolution whose next window would begin behind the input", "x f32[2, 3, 8, 9]; w f32[4, 3, 3, 3]; b f32[4]",
     "aten.convolution.default(x, w, b, [100, 2305843009213693952], [1, 1], [1, 1], False, [0, 0], 1)"},
    {"gradients of such a convolution", "g f32[2, 4, 1, 1]; x f32[2, 3, 8, 9]; w f32[4, 3, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [4], [100, 32], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])",
     3},
    {"a convolution in groups of few channels", "x f32[2, 16, 12, 12]; w f32[24, 4, 3, 3]; b f32[24]",
     "aten.convolution.default(x, w, b, [2, 2], [1, 1], [1, 1], False, [0, 0], 4)"},
    {"a packed convolution in bfloat16 and a sum",
     "x bf16[2, 16, 12, 12]; o bf16[2, 24, 12, 12]; w bf16[24, 16, 3, 3]; b bf16[24]",
     CONVOLUTION ".binary(x, o, w, b, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')", 1, 1.2e-2},
    {"a packed convolution in float16 and a sum",
     "x f16[2, 16, 12, 12]; o f16[2, 24, 12, 12]; w f16[24, 16, 3, 3]; b f16[24]",
     CONVOLUTION ".binary(x, o, w, b, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], '')", 1, 2e-3},
    {"a quantized convolution", "x u8[2, 16, 6, 6]; w i8[32, 16, 3, 3]; s f32[32]; b f32[32]",
     "onednn.qconv_pointwise.default(x, 0.05, 10, w, s, None, b, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, "
     "'none', [], '')"},
    {"a quantized product of rows at unequal distances",
     "x u8[2, 3, 16][16, 32, 1]; w i8[16, 32]; s f32[32]; b f32[32]",
     "onednn.qlinear_pointwise.default(x, 0.05, 10, w, s, None, b, 1.0, 0, torch.float32, 'none', [], '')"},
    {"a quantized product", "x u8[9, 16]; w i8[16, 32]; s f32[32]; b f32[32]",
     "onednn.qlinear_pointwise.default(x, 0.05, 10, w, s, None, b, 1.0, 0, torch.float32, 'none', [], '')"},
    {"gradients of a convolution", "g f32[2, 8, 6, 9]; x f32[2, 6, 12, 11]; w f32[8, 6, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [8], [2, 1], [1, 1], [1, 2], False, [0, 0], 1, [True, True, True])",
     3},
    {"gradients in groups, without bias", "g f32[2, 9, 30]; x f32[2, 6, 30]; w f32[9, 2, 5]",
     "aten.convolution_backward.default(g, x, w, None, [1], [2], [1], False, [0], 3, [True, True, False])", 3},
    {"gradients by channel, channels last",
     "g f32[2, 6, 8, 9][432, 1, 54, 6]; x f32[2, 6, 8, 9][432, 1, 54, 6]; w f32[6, 1, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 6, [True, True, True])",
     3},
    {"gradients by channel, wide windows", "g f32[2, 24, 8, 9]; x f32[2, 24, 8, 9]; w f32[24, 1, 7, 7]",
     "aten.convolution_backward.default(g, x, w, [24], [1, 1], [3, 3], [1, 1], False, [0, 0], 24, [True, True, True])",
     3},
    {"gradients in groups, channels last",
     "g f32[2, 32, 4, 5][640, 1, 160, 32]; x f32[2, 16, 8, 9][1152, 1, 144, 16]; w f32[32, 4, 3, 3]",
     "aten.convolution_backward.default(g, x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 4, [True, True, False])",
     3},
    {"gradients of a volume, channels last",
     "g f32[2, 16, 4, 5, 3][960, 1, 240, 48, 16]; x f32[2, 16, 4, 5, 3][960, 1, 240, 48, 16]; w f32[16, 16, 3, 3, 1]",
     "aten.convolution_backward.default(g, x, w, [16], [1, 1, 1], [1, 1, 0], [1, 1, 1], False, [0, 0, 0], 1, [True, "
     "True, True])",
     3},
    {"gradients of a transposed convolution, channels last",
     "g f32[2, 16, 16, 18][4608, 1, 288, 16]; x f32[2, 8, 8, 9][576, 1, 72, 8]; w f32[8, 16, 4, 4]",
     "aten.convolution_backward.default(g, x, w, [16], [2, 2], [1, 1], [1, 1], True, [0, 0], 1, [True, True, True])",
     3},
    {"the input's gradient alone", "g f32[2, 8, 6, 9]; x f32[2, 6, 12, 11]; w f32[8, 6, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [8], [2, 1], [1, 1], [1, 2], False, [0, 0], 1, [True, False, False])",
     3},
    {"the bias's gradient alone", "g f32[2, 8, 6, 9]; x f32[2, 6, 12, 11]; w f32[8, 6, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [8], [2, 1], [1, 1], [1, 2], False, [0, 0], 1, [False, False, True])",
     3},
    {"gradients of a transposed convolution", "g f32[2, 4, 11]; x f32[2, 6, 5]; w f32[6, 2, 4]",
     "aten.convolution_backward.default(g, x, w, [4], [2], [1], [1], True, [1], 2, [True, True, True])", 3},
    {"gradients in bfloat16", "g bf16[2, 8, 6, 9]; x bf16[2, 16, 12, 11]; w bf16[8, 16, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [8], [2, 1], [1, 1], [1, 2], False, [0, 0], 1, [True, True, True])", 3,
     8e-3},
    {"gradients in float16", "g f16[2, 8, 6, 9]; x f16[2, 16, 12, 11]; w f16[8, 16, 3, 3]",
     "aten.convolution_backward.default(g, x, w, [8], [2, 1], [1, 1], [1, 2], False, [0, 0], 1, [True, True, True])", 3,
     1e-3},
};

struct Refused {
    const char* name;
    const char* inputs;
    const char* call;
    const char* why;
};
constexpr Refused kRefused[] = {
    {"no row", "a f32[3]", "aten.tan.default(a)", "no library computes it"},
    {"real numbers", "a f32[3]", "aten.sin.default(a)", "a generated kernel computes it for real dtypes"},
    {"8-bit floats", "a f8e4m3fn[3, 4]; b f8e4m3fn[4, 5]", "aten.mm.default(a, b)",
     "the result is float8_e4m3fn, which the library does not compute in here"},
    {"dropout", "q f32[1, 2, 4, 8]; k f32[1, 2, 4, 8]; v f32[1, 2, 4, 8]", FLASH "(q, k, v, 0.1)",
     "it has dropout, and the state of the random generator is not an operand"},
    {"float64", "q f64[1, 2, 4, 8]; k f64[1, 2, 4, 8]; v f64[1, 2, 4, 8]", FLASH "(q, k, v)",
     "the query is not a tensor of float32, bfloat16 or float16"},
    {"a mask that is not a float", "q f32[1, 2, 4, 8]; k f32[1, 2, 4, 8]; v f32[1, 2, 4, 8]; m b8[4, 4]",
     FLASH "(q, k, v, attn_mask=m)", "the mask is bool, and only floats are added to scores"},
};

/// A graph of one call, which returns all of its results.
std::shared_ptr<const Module> moduleOf(const QString& inputs, const char* call, int results) {
    QStringList parameters;
    for (const QString& input : inputs.split("; "))
        parameters << input.section(' ', 0, 0) + ": \"" + input.section(' ', 1) + '"';
    QString text = "def forward(" + parameters.join(", ") + "):\n    r = " + call + "\n";
    if (results == 1) return testing::moduleOf((text + "    return (r,)").toStdString());
    QStringList names;
    for (int i = 0; i < results; ++i) {
        names << QString("r%1").arg(i);
        text += QString("    r%1 = r[%1]\n").arg(i);
    }
    return testing::moduleOf((text + "    return (" + names.join(", ") + ")").toStdString());
}
const Node& callOf(const Module& module) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && !node.isCall("operator.getitem")) return node;
    throw std::runtime_error("a graph without a call");
}
void hide(Tensor& tensor) {
    const int64_t row = tensor.size(-1);
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (float& value = tensor.as<float>()[i]; value < 0 || i < row) value = -std::numeric_limits<float>::infinity();
}
/// Uninitialised, as a run of the call finds them.
std::vector<Tensor> emptyResults(const Node& call) {
    const auto empty = [](const ValueType& type) {
        const TensorType* tensor = type.tensor();
        return tensor ? Tensor::empty(tensor->dtype, toInts(tensor->sizes), toInts(tensor->strides)) : Tensor();
    };
    std::vector<Tensor> results;
    if (const TupleType* tuple = call.type().tuple())
        for (const ValueType& item : *tuple) results.push_back(empty(item));
    else results.push_back(empty(call.type()));
    return results;
}
bool sameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (size_t i = 0; i < a.size(); ++i)
        if (a[i].defined() && std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) != 0) return false;
    return true;
}

}  // namespace

class LibrariesTest : public QObject {
    Q_OBJECT

    static QString wrongOf(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double error) {
        for (size_t i = 0; i < actual.size(); ++i) {
            if (!actual[i].defined()) continue;
            const double largest = compare(expected[i], expected[i], {}).maxExpected;
            const Comparison found = compare(actual[i], expected[i], {.relative = 0, .absolute = error * largest});
            if (!found.within)
                return QString("result %1: off by %2 of %3").arg(i).arg(found.maxAbsoluteError).arg(found.maxExpected);
        }
        return {};
    }

    /// The steps for which oneDNN has nothing but loops that serve it as a reference, a hundred times slower.
    static QString plainLoopsOf(const PlannedCall& planned) {
        QStringList found;
        for (const std::string& way : planned.implementations())
            if (way.find("ref") != std::string::npos) found << QString::fromStdString(way);
        return found.join(", ");
    }

  private slots:
    void agrees_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kServed); ++i) QTest::newRow(kServed[i].name) << static_cast<int>(i);
    }
    void agrees() {
        QFETCH(int, row);
        const Row& tested = kServed[row];
        const auto module = ::moduleOf(tested.inputs, tested.call, tested.results);
        const Node& call = callOf(*module);
        QCOMPARE(QString::fromStdString(whyNoLibrary(call, kCpuTarget)), QString());
        std::vector<Tensor> inputs = drawnInputs(*module, 7);
        LibraryCallCase one{call.op().name(),
                            std::string(libraryRowOf(call, kCpuTarget)->library.name),
                            {call.args().begin(), call.args().end()},
                            {},
                            {}};
        const std::vector<Node*> placeholders = module->graph().placeholders();
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (placeholders[i]->name() == "hidden") hide(inputs[i]);
            one.operands.emplace_back(placeholders[i], inputs[i]);
        }
        const auto expected = interpret(*module, inputs, {.pure = true});
        QVERIFY2(expected, expected ? "" : expected.error().message.c_str());
        std::vector<Tensor> first;
        for (const bool constant : {false, true}) {
            one.constant.assign(inputs.size(), constant);
            for (const int threads : {1, 4}) {
                std::vector<Tensor> results = emptyResults(call);
                const auto planned = planByLibrary(one, results, threads);
                QVERIFY2(planned, planned ? "" : planned.error().message.c_str());
                QVERIFY(runByLibrary(**planned, one, results, threads));
                QCOMPARE(plainLoopsOf(**planned), QString());
                QCOMPARE(wrongOf(results, *expected, tested.error), QString());
                if (one.library != "oneDNN" && !first.empty()) QVERIFY(sameBits(first, results));
                first = results;
            }
        }
        runsAtOnce(one, call, first);
    }
    /// What is not a number, and what has no bounds, comes out where the reference has it: the library's own clips drop
    /// NaN.
    void keepsNan_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kServed); ++i)
            if (QString(kServed[i].call).contains("pointwise") &&
                isFloating(
                    drawnInputs(*::moduleOf(kServed[i].inputs, kServed[i].call, kServed[i].results), 7)[0].dtype()))
                QTest::newRow(kServed[i].name) << static_cast<int>(i);
    }
    void keepsNan() {
        QFETCH(int, row);
        const Row& tested = kServed[row];
        const auto module = ::moduleOf(tested.inputs, tested.call, tested.results);
        const Node& call = callOf(*module);
        std::vector<Tensor> inputs = drawnInputs(*module, 7);
        for (const double special : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity()}) {
            storeElements(inputs[0].dtype(), inputs[0].data(), 1, 1, &special);
            LibraryCallCase one{call.op().name(),
                                std::string(libraryRowOf(call, kCpuTarget)->library.name),
                                {call.args().begin(), call.args().end()},
                                {},
                                std::vector<bool>(inputs.size(), false)};
            const std::vector<Node*> placeholders = module->graph().placeholders();
            for (size_t i = 0; i < inputs.size(); ++i) one.operands.emplace_back(placeholders[i], inputs[i]);
            const auto expected = interpret(*module, inputs, {.pure = true});
            QVERIFY2(expected, expected ? "" : expected.error().message.c_str());
            std::vector<Tensor> results = emptyResults(call);
            const auto planned = planByLibrary(one, results, 1);
            QVERIFY2(planned, planned ? "" : planned.error().message.c_str());
            QVERIFY(runByLibrary(**planned, one, results, 1));
            QCOMPARE(wrongOf(results, *expected, tested.error), QString());
        }
    }
    /// oneDNN 2 would unroll the copying of a row over its elements and channels.
    void rowsAreComputedDirectly() {
        const auto module = ::moduleOf("x f32[1, 64, 2000]; w f32[64, 64, 3]; b f32[64]",
                                       "aten.convolution.default(x, w, b, [2], [1], [1], False, [0], 1)", 1);
        const Node& call = callOf(*module);
        LibraryCallCase one{call.op().name(), "oneDNN", {call.args().begin(), call.args().end()}, {}, {}};
        const std::vector<Tensor> inputs = drawnInputs(*module, 7);
        const std::vector<Node*> placeholders = module->graph().placeholders();
        for (size_t i = 0; i < inputs.size(); ++i) one.operands.emplace_back(placeholders[i], inputs[i]);
        one.constant.assign(inputs.size(), false);
        const auto planned = planByLibrary(one, emptyResults(call), 1);
        QVERIFY2(planned, planned ? "" : planned.error().message.c_str());
        for (const std::string& way : (*planned)->implementations())
            QVERIFY2(way.find("brgconv") == std::string::npos, way.c_str());
    }
    static void runsAtOnce(const LibraryCallCase& one, const Node& call, const std::vector<Tensor>& expected) {
        const auto planned = planByLibrary(one, emptyResults(call), 4);
        QVERIFY(planned);
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 10; ++i)
            threads.emplace_back([&] {
                for (int repeat = 0; repeat < 3; ++repeat) {
                    std::vector<Tensor> results = emptyResults(call);
                    if (!runByLibrary(**planned, one, results, 4) || !sameBits(results, expected)) ++wrong;
                }
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(wrong.load(), 0);
    }

    void everyRowIsTested() {
        std::set<std::string_view> tested;
        for (const Row& row : kServed)
            tested.insert(std::string_view(row.call).substr(0, std::string_view(row.call).find('(')));
        for (const LibraryRow& row : libraryRows())
            // packed calls: freezing_test and cpu_backend_test; portable functions and quantized layers: portable_test;
            // those of GPUs: gpu_samples_test
            if (row.library.device == DeviceType::Cpu && !row.op.starts_with("mk") && !row.isFunction() &&
                &row.library != &kLapack && &row.library != &kOneDnnBytes)
                QVERIFY2(tested.contains(row.op), std::string(row.op).c_str());
    }

    void refusals_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kRefused); ++i) QTest::newRow(kRefused[i].name) << static_cast<int>(i);
    }
    void refusals() {
        QFETCH(int, row);
        const auto module = ::moduleOf(kRefused[row].inputs, kRefused[row].call, 1);
        QCOMPARE(QString::fromStdString(whyNoLibrary(callOf(*module), kCpuTarget)), QString(kRefused[row].why));
        QVERIFY(libraryRowOf(callOf(*module), kCpuTarget) == nullptr);
    }
};

CUTAWAY_SUITE(LibrariesTest)
#include "libraries_test.moc"
