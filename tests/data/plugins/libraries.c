/* Libraries that do what one must not, and a good one: each computes aten.relu.default in its own way. */
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cutaway_plugin.h"

static const ct_tensor *operand(const ct_call *call) { return call->args[0]->tensor; }
static size_t count(const ct_tensor *tensor) {
    size_t all = 1, d;
    for (d = 0; d < tensor->rank; ++d) all *= (size_t)tensor->sizes[d];
    return all;
}
static int yes(const ct_host *host, const ct_call *call) {
    (void)host;
    return strcmp(operand(call)->dtype, "f32") == 0 ? CT_YES : CT_NO;
}
/* Where the element number `i`, row by row, lies. */
static size_t place(const ct_tensor *tensor, size_t i) {
    size_t at = 0, d;
    for (d = tensor->rank; d-- > 0; i /= (size_t)tensor->sizes[d])
        at += i % (size_t)tensor->sizes[d] * (size_t)tensor->strides[d];
    return at;
}
static int relu(const ct_host *host, const ct_call *call) {
    const float *from = (const float *)(const void *)operand(call)->data.data;
    float *to = call->results[0]->memory;
    size_t i;
    (void)host;
    for (i = 0; to && i < count(operand(call)); ++i) {
        const float x = from[place(operand(call), i)];
        to[place(call->results[0], i)] = x > 0 ? x : 0;
    }
    return CT_OK;
}
static int refuses(const ct_host *host, const ct_call *call) {
    (void)call;
    host->say(host, "it is Sunday");
    return CT_NO;
}
/* Takes what it does not know yet, and refuses it when it is known. */
static int refuses_later(const ct_host *host, const ct_call *call) {
    static int asked;
    (void)call;
    if (asked++ == 0 && getenv("CUTAWAY_TEST_LATER") == NULL) return CT_YES;
    host->say(host, "it has changed its mind");
    return CT_NO;
}
/* Takes a size that only a run knows, and refuses it there. */
static int refuses_known(const ct_host *host, const ct_call *call) {
    if (operand(call)->sizes[0] < 0) return CT_YES;
    host->say(host, "it has seen the size");
    return CT_NO;
}
static int silent(const ct_host *host, const ct_call *call) {
    (void)host, (void)call;
    return CT_NO;
}
static int crashes(const ct_host *host, const ct_call *call) {
    (void)host, (void)call;
    raise(SIGSEGV);
    return CT_YES;
}
static int hangs(const ct_host *host, const ct_call *call) {
    (void)host, (void)call;
    for (;;) usleep(1000);
    return CT_YES;
}
static int ends(const ct_host *host, const ct_call *call) {
    (void)host, (void)call;
    exit(3);
    return CT_OK;
}
static int fails(const ct_host *host, const ct_call *call) {
    (void)call;
    host->fail(host, "its licence has ended");
    return CT_FAILED;
}
static int nans(const ct_host *host, const ct_call *call) {
    float *to = call->results[0]->memory;
    size_t i;
    (void)host;
    for (i = 0; i < count(operand(call)); ++i) to[i] = NAN;
    return CT_OK;
}
static int writes_nothing(const ct_host *host, const ct_call *call) {
    (void)host, (void)call;
    return CT_OK;
}
static int writes_behind(const ct_host *host, const ct_call *call) {
    relu(host, call);
    ((float *)call->results[0]->memory)[count(operand(call))] = 1;
    return CT_OK;
}
static int writes_far(const ct_host *host, const ct_call *call) {
    (void)host;
    memset(call->results[0]->memory, 1, (size_t)1 << 30);
    return CT_OK;
}
static int writes_operand(const ct_host *host, const ct_call *call) {
    *(volatile char *)(uintptr_t)operand(call)->data.data = 1;
    return relu(host, call);
}
static int wrong(const ct_host *host, const ct_call *call) {
    float *to = call->results[0]->memory;
    size_t i;
    relu(host, call);
    for (i = 0; i < count(operand(call)); ++i) to[i] += 1;
    return CT_OK;
}
static int returns(const ct_host *host, const ct_call *call) {
    relu(host, call);
    return 4711;
}

#define LIBRARY(name, takes, run) \
    static const ct_library library_##name = {sizeof(ct_library), #name, "A library", "aten.relu.default", takes, run};
LIBRARY(good, yes, relu)
LIBRARY(refuses, refuses, relu)
LIBRARY(refuses_later, refuses_later, relu)
LIBRARY(refuses_known, refuses_known, relu)
LIBRARY(silent, silent, relu)
LIBRARY(crashes_asked, crashes, relu)
LIBRARY(crashes, yes, crashes)
LIBRARY(hangs, yes, hangs)
LIBRARY(hangs_asked, hangs, relu)
LIBRARY(ends, yes, ends)
LIBRARY(fails, yes, fails)
LIBRARY(nans, yes, nans)
LIBRARY(writes_nothing, yes, writes_nothing)
LIBRARY(writes_behind, yes, writes_behind)
LIBRARY(writes_far, yes, writes_far)
LIBRARY(writes_operand, yes, writes_operand)
LIBRARY(wrong, yes, wrong)
LIBRARY(returns, yes, returns)
LIBRARY(no_function, yes, NULL)
static const ct_library *const libraries[] = {
    &library_good,    &library_refuses,        &library_refuses_later, &library_silent,     &library_crashes_asked,
    &library_crashes, &library_hangs,          &library_hangs_asked,   &library_ends,       &library_fails,
    &library_nans,    &library_writes_nothing, &library_writes_behind, &library_writes_far, &library_writes_operand,
    &library_wrong,   &library_returns,        &library_no_function,   &library_refuses_known, NULL};
static const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI, 0, "libs", "1", "Libraries", NULL, NULL, NULL, NULL, NULL,
                                 NULL, NULL, libraries};
const ct_plugin *cutaway_plugin(void) { return &plugin; }
