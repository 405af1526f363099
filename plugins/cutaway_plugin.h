/* The plugins of Cutaway: plain C, text in and text out.
 *
 * A plugin is a shared library that exports cutaway_plugin(). It says its name and version and gives any of: passes,
 * rules, importers, oracles, colourings, definitions of operators, judges, libraries. Cutaway calls it in a child
 * process with limits on time, memory, the size of files and processes; what it returns is parsed and verified. A
 * plugin that crashes or hangs costs itself alone.
 *
 * The contract grows without breaking what is built: each struct says its own size first, members are only ever added
 * at the end, and neither side reads beyond the size that the other says. CT_ABI changes if that should ever not do.
 *
 * A call gets a host, through which it answers, and returns CT_OK, CT_YES or CT_NO (an oracle, a judge), or CT_FAILED
 * after host->fail said why. All text is UTF-8. Texts that are handed over are borrowed until the call returns. Calls
 * come one at a time, from one thread, and the same question must get the same answer: Cutaway steps into a pass by
 * making a part of its rewrites. */
#ifndef CUTAWAY_PLUGIN_H
#define CUTAWAY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CT_ABI 1u

enum { CT_OK = 0, CT_NO = 0, CT_YES = 1, CT_FAILED = 2 };

/* Text or bytes that somebody else owns; not ended by a zero. */
typedef struct ct_text {
    const char* data;
    size_t size;
} ct_text;

typedef struct ct_host ct_host;
struct ct_host {
    size_t size;
    /* Gives a result: of a pass the graph, once, if it changed anything; of an importer each graph, by its name. */
    void (*emit)(const ct_host* host, const char* name, ct_text text);
    /* Says why the call fails; return CT_FAILED after it. */
    void (*fail)(const ct_host* host, const char* why);
    /* The value that the user gave a setting of the pass, or its initial value; NULL for one that is not declared. */
    const char* (*setting)(const ct_host* host, const char* key);
    /* Of a pass: the rewrite that makes or removes this node is called `rule`, and happens because of `why`. Without
     * it rewrites have the pass's name and summary. */
    void (*rewrite)(const ct_host* host, const char* node, const char* rule, const char* why);
    /* Of a colouring: a number, or with a `kind` a class; and a sentence. */
    void (*color)(const ct_host* host, const char* node, double number, const char* kind, const char* why);
    /* Of an oracle or a judge: what was found, as a sentence. Of a library that does not take a call: why. */
    void (*say)(const ct_host* host, const char* sentence);
};

/* Graph text in, graph text out. Lines that come back as they were are the same nodes. */
typedef struct ct_pass {
    size_t size;
    const char* name;    /* [a-z0-9_]+ */
    const char* summary; /* one sentence */
    /* pre_grad_custom_pass, joint_custom_pre_pass, joint_custom_post_pass, post_grad_custom_pre_pass or
     * post_grad_custom_post_pass, as in PyTorch */
    const char* place;
    const char* after;    /* what must run earlier: names of passes, with spaces between; or NULL */
    const char* settings; /* "key=initial value: sentence", a line each; or NULL */
    int (*run)(const ct_host* host, ct_text graph);
} ct_pass;

/* The bytes of a file in, one graph or more out: host->emit(host, "main", text). */
typedef struct ct_importer {
    size_t size;
    const char* name;
    const char* summary;
    const char* patterns; /* of file names, with spaces between: "*.param *.ncnn" */
    int (*run)(const ct_host* host, const char* file, ct_text bytes);
} ct_importer;

/* Whether the graph (still) fails: CT_YES or CT_NO. For minify and bisect. */
typedef struct ct_oracle {
    size_t size;
    const char* name;
    const char* summary;
    int (*run)(const ct_host* host, ct_text graph);
} ct_oracle;

/* A number or a class for each node: host->color. */
typedef struct ct_coloring {
    size_t size;
    const char* name;
    const char* summary;
    const char* unit; /* of the numbers, "FLOP"; or NULL */
    int (*run)(const ct_host* host, ct_text graph);
} ct_coloring;

/* A dense tensor in this machine's byte order; row-major, but for operands of a library. */
typedef struct ct_tensor {
    size_t size;
    const char* dtype; /* "f32", as annotations of graphs have it */
    size_t rank;
    const int64_t* sizes;
    ct_text data;
    /* Of a library's call: elements from one to the next of each dim. They fill the memory without gaps, in any order
     * of the dims: a transposed matrix comes as it lies. Else NULL, which is row-major. */
    const int64_t* strides;
    /* Of a library's result: where its elements go, row-major; NULL where nobody reads the result. */
    void* memory;
} ct_tensor;

/* Whether `actual` may stand for `expected`: CT_YES or CT_NO, and host->say why. For bisect. */
typedef struct ct_judge {
    size_t size;
    const char* name;
    const char* summary;
    int (*run)(const ct_host* host, const ct_tensor* actual, const ct_tensor* expected);
} ct_judge;

/* What an argument of a call is. */
enum {
    CT_ARG_NONE = 0,
    CT_ARG_TENSOR = 1,
    CT_ARG_INT = 2,
    CT_ARG_REAL = 3,
    CT_ARG_BOOL = 4,
    CT_ARG_TEXT = 5,
    CT_ARG_DTYPE = 6,
    CT_ARG_LIST = 7
};
typedef struct ct_argument ct_argument;
struct ct_argument {
    size_t size;
    const char* name; /* of the operator's parameter: "self"; NULL of an item of a list */
    int kind;         /* CT_ARG_INT: a size may not be known before the run, and is -1 until then */
    int64_t integer;  /* CT_ARG_INT; CT_ARG_BOOL: 0 or 1 */
    double real;
    const char* text; /* CT_ARG_TEXT; CT_ARG_DTYPE: "f32" */
    const ct_tensor* tensor;
    const ct_argument* const* items; /* CT_ARG_LIST: ends with NULL */
};

/* One call of an operator, defaults filled in. Lists end with NULL. */
typedef struct ct_call {
    size_t size;
    const char* op;                  /* "aten.mm.default" */
    const ct_argument* const* args;  /* one for each parameter of the operator, in its order */
    const ct_tensor* const* results; /* one, or as many as the operator returns */
    int threads;                     /* that the call may use */
} ct_call;

/* Computes calls on the CPU, in place of Cutaway's kernels and libraries. Operators that write to an operand, and those
 * whose results have sizes that follow from data, are not asked for. */
typedef struct ct_library {
    size_t size;
    const char* name;
    const char* summary;
    const char* ops; /* full names of operators, with spaces between: "aten.mm.default aten.bmm.default" */
    /* Whether it computes this call: CT_YES, or CT_NO and host->say why not. Asked when a graph is compiled, where
     * tensors have no data and sizes that only a run knows are -1, and again when all sizes are known. */
    int (*takes)(const ct_host* host, const ct_call* call);
    /* Computes it. Operands cannot be written to; each result has its memory. */
    int (*run)(const ct_host* host, const ct_call* call);
} ct_library;

typedef struct ct_plugin {
    size_t size;
    uint32_t abi;       /* CT_ABI */
    uint32_t processes; /* not 0: it starts processes, 64 at a time; else none can be started */
    const char* name;   /* [a-z0-9_]+, by which users ask for it */
    const char* version;
    const char* summary;
    const char* rules; /* in the form that `cutaway-cli rules` prints; or NULL */
    /* Each list ends with NULL; a list may be NULL. */
    const ct_pass* const* passes;
    const ct_importer* const* importers;
    const ct_oracle* const* oracles;
    const ct_coloring* const* colorings;
    /* What operators compute that Cutaway does not know: "def mylib.scale_add.default(x, y):" and its statements, in
     * ATen operators or functions of torch, ended by "return r"; or NULL. A request that names the plugin writes them
     * out. */
    const char* operators;
    const ct_judge* const* judges;
    const ct_library* const* libraries;
} ct_plugin;

/* The one exported function. What it returns lives as long as the library is loaded. */
const ct_plugin* cutaway_plugin(void);

#ifdef __cplusplus
}
#endif
#endif
