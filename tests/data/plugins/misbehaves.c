/* Passes that do what a plugin must not: each has its own way. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cutaway_plugin.h"

static int give(const ct_host *host, const char *text) {
    const ct_text out = {text, strlen(text)};
    host->emit(host, "graph", out);
    return CT_OK;
}
/* The graph with `from` replaced by `to`, where it stands first. */
static int edit(const ct_host *host, ct_text graph, const char *from, const char *to) {
    char *text = malloc(graph.size + 1), *at, *out = calloc(1, graph.size + strlen(to) + 1);
    memcpy(text, graph.data, graph.size);
    text[graph.size] = 0;
    at = strstr(text, from);
    if (at == NULL) abort();
    memcpy(out, text, (size_t)(at - text));
    strcat(out, to);
    strcat(out, at + strlen(from));
    give(host, out);
    free(text);
    free(out);
    return CT_OK;
}

static int crash(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    raise(SIGSEGV);
    return CT_OK;
}
static int ends(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    exit(0);
    return CT_OK;
}
static int hang(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    for (;;) usleep(1000);
    return CT_OK;
}
static int forks(const ct_host *host, ct_text graph) {
    const pid_t child = fork();
    (void)graph;
    if (child == 0)
        for (;;) sleep(1);
    if (child < 0) host->fail(host, strerror(errno));
    return child < 0 ? CT_FAILED : CT_OK;
}
static int executes(const ct_host *host, ct_text graph) {
    (void)graph;
    execl("/bin/true", "true", (char *)NULL);
    host->fail(host, strerror(errno));
    return CT_FAILED;
}
/* As one does that takes what fork returned for a process. */
static int signals(const ct_host *host, ct_text graph) {
    (void)graph;
    if (kill(getppid(), 0) == 0) return CT_OK;
    host->fail(host, strerror(errno));
    return CT_FAILED;
}
static int leaves_group(const ct_host *host, ct_text graph) {
    (void)graph;
    if (setpgid(0, getpgid(getppid())) == 0) return CT_OK;
    host->fail(host, strerror(errno));
    return CT_FAILED;
}
static int stops(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    raise(SIGSTOP);
    return CT_OK;
}
/* The connection to Cutaway, whose descriptors it was not given, and goes on. */
static int closes(const ct_host *host, ct_text graph) {
    int file;
    (void)host, (void)graph;
    for (file = 0; file < 64; ++file) close(file);
    for (;;) sleep(1);
    return CT_OK;
}
static int fails_and_goes_on(const ct_host *host, ct_text graph) {
    give(host, "def forward(x):\n    return (x,)\n");
    host->fail(host, "it has no licence");
    (void)graph;
    return CT_OK;
}
static int says_much(const ct_host *host, ct_text graph) {
    const size_t size = 1 << 20;
    char *why = malloc(size + 1);
    (void)graph;
    memset(why, 'w', size);
    why[size] = 0;
    host->fail(host, why);
    free(why);
    return CT_FAILED;
}
static int writes(const ct_host *host, ct_text graph) {
    char *block = calloc(1, 1 << 20);
    const int file = open("large", O_CREAT | O_WRONLY, 0600);
    long long left = 10LL << 30;
    (void)graph;
    while (left > 0 && write(file, block, 1 << 20) > 0) left -= 1 << 20;
    host->fail(host, "it could not write 10 GiB");
    return left > 0 ? CT_FAILED : CT_OK;
}
static int writes_many(const ct_host *host, ct_text graph) {
    char *block = calloc(1, 512 << 10), name[32];
    int i;
    (void)host, (void)graph;
    for (i = 0; i < 20480; ++i) {
        const int file = (snprintf(name, sizeof name, "large_%d", i), open(name, O_CREAT | O_WRONLY, 0600));
        if (file < 0 || write(file, block, 512 << 10) < 0) break;
        close(file);
        usleep(1000);
    }
    for (;;) sleep(1);
    return CT_OK;
}
/* Beside its folder, which is a temporary one. */
static int writes_elsewhere(const ct_host *host, ct_text graph) {
    const int file = open("../cutaway_wrote_elsewhere", O_CREAT | O_WRONLY, 0600);
    (void)graph;
    if (file < 0) return host->fail(host, strerror(errno)), CT_FAILED;
    unlink("../cutaway_wrote_elsewhere");
    return CT_OK;
}
static int remembers(const ct_host *host, ct_text graph) {
    size_t i;
    (void)graph;
    for (i = 0; i < 4096; ++i) {
        char *block = malloc(16 << 20);
        if (block == NULL) {
            host->fail(host, "no memory");
            return CT_FAILED;
        }
        memset(block, 1, 16 << 20);
    }
    return CT_OK;
}
static int prints(const ct_host *host, ct_text graph) {
    int i;
    (void)graph;
    for (i = 0; i < 1000; ++i) puts("this is not an answer");
    fflush(stdout);
    (void)host;
    return CT_OK;
}
static int scribbles(const ct_host *host, ct_text graph) {
    int file;
    (void)host, (void)graph;
    for (file = 3; file < 16; ++file)
        if (write(file, "1234567812345678rubbish", 23) < 0) continue;
    for (;;) sleep(1);
    return CT_OK;
}
static int silent(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    return CT_FAILED;
}
static int returns(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    return 4711;
}
static int returns_much(const ct_host *host, ct_text graph) {
    const size_t size = 24 << 20;
    const ct_text out = {calloc(1, size), size};
    (void)graph;
    host->emit(host, "graph", out);
    return CT_OK;
}
static int twice(const ct_host *host, ct_text graph) {
    host->emit(host, "graph", graph);
    host->emit(host, "graph", graph);
    return CT_OK;
}
static int rubbish(const ct_host *host, ct_text graph) {
    (void)graph;
    return give(host, "\x01\xff rubbish (((");
}
static int nothing(const ct_host *host, ct_text graph) {
    (void)graph;
    return give(host, "");
}
static int unknown_operator(const ct_host *host, ct_text graph) {
    return edit(host, graph, "aten.relu.default", "mine.relu.default");
}
static int wrong_arguments(const ct_host *host, ct_text graph) {
    return edit(host, graph, "aten.relu.default(add)", "aten.relu.default(add, 1, 2, 3)");
}
static int cyclic(const ct_host *host, ct_text graph) {
    return edit(host, graph, "aten.mul.Tensor(x, y)", "aten.mul.Tensor(x, relu)");
}
static int itself(const ct_host *host, ct_text graph) {
    return edit(host, graph, "aten.mul.Tensor(x, y)", "aten.mul.Tensor(x, mul)");
}
static int undefined(const ct_host *host, ct_text graph) {
    return edit(host, graph, "aten.relu.default(add)", "aten.relu.default(nobody)");
}
static int missing(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    mul: \"f32[4, 8]\" = aten.mul.Tensor(x, y)\n", "");
}
static int defined_twice(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    relu:", "    mul: \"f32[4, 8]\" = aten.neg.default(x)\n    relu:");
}
static int other_inputs(const ct_host *host, ct_text graph) {
    return edit(host, graph, "(x: \"f32[4, 8]\",", "(x: \"f32[4, 8]\", more: \"f32[2]\",");
}
static int fewer_outputs(const ct_host *host, ct_text graph) { return edit(host, graph, "(relu, mul)", "(relu,)"); }
static int other_output(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    relu: \"f32[4, 8]\" = aten.relu.default(add)",
                "    relu: \"f32[8, 4]\" = aten.permute.default(add, [1, 0])");
}
static int wrong_type(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    relu: \"f32[4, 8]\"", "    relu: \"f16[4, 8]\"");
}
static int adds_graph(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    return (relu, mul)\n",
                "    return (relu, mul)\n\ndef other(a: \"f32[2]\"):\n    return (a,)\n");
}
static int computes_input(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    mul:", "    x: \"f32[4, 8]\" = aten.neg.default(y)\n    mul:");
}
/* More than 16 times what it was given, and 16 MiB. */
static int grows(const ct_host *host, ct_text graph) {
    const size_t more = 17 << 20;
    char *text = malloc(more + graph.size);
    const ct_text out = {text, more + graph.size};
    memset(text, '\n', more);
    memcpy(text + more, graph.data, graph.size);
    host->emit(host, "graph", out);
    free(text);
    return CT_OK;
}
static int long_name(const ct_host *host, ct_text graph) {
    char *call = calloc(1, (1 << 20) + 100);
    memset(call + sprintf(call, "aten.relu.default("), 'a', 1 << 20);
    strcat(call, ")");
    edit(host, graph, "aten.relu.default(add)", call);
    free(call);
    return CT_OK;
}
static int no_tensor(const ct_host *host, ct_text graph) {
    return edit(host, graph, "    relu:", "    w: \"f32[4, 8]\" = self.nobody\n    relu:");
}
/* What a good pass does. */
static int good(const ct_host *host, ct_text graph) {
    return edit(host, graph, "aten.relu.default(add)", "aten.relu.default(mul)");
}

#define PASS(function)                                                                                              \
    static const ct_pass pass_##function = {sizeof(ct_pass), #function, "Misbehaves", "post_grad_custom_post_pass", \
                                            NULL, NULL, function};
#define PASSES(each) \
    each(crash) each(ends) each(hang) each(forks) each(executes) each(signals) each(leaves_group) each(stops) \
    each(closes) each(fails_and_goes_on) each(says_much) each(writes) each(writes_many) each(writes_elsewhere) each(remembers) \
    each(prints) each(scribbles) each(silent) each(returns) each(returns_much) each(twice) each(rubbish) \
    each(nothing) each(unknown_operator) each(wrong_arguments) each(cyclic) each(itself) each(undefined) \
    each(missing) each(defined_twice) each(other_inputs) each(fewer_outputs) each(other_output) each(wrong_type) \
    each(adds_graph) each(computes_input) each(grows) each(long_name) each(no_tensor) each(good)
PASSES(PASS)

#define POINTER(function) &pass_##function,
static const ct_pass *const passes[] = {PASSES(POINTER) NULL};
static const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI, 0, "misbehaves", "1", "Misbehaves", NULL, passes, NULL, NULL, NULL};
const ct_plugin *cutaway_plugin(void) { return &plugin; }
