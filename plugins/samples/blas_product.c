/* A library: matrix products by the system's BLAS, in place of oneDNN's. What a team has that ports a BLAS of its own,
 * and wants to time, step and compare call by call. Operands come as they lie, so that a transposed weight is not a copy:
 * BLAS reads matrices by columns, and computes the transposed product of the transposed matrices.
 *
 *     cc -O2 -shared -fPIC -o blas_product.so blas_product.c -lblas
 *     cutaway-cli run model.pt2 --backend cpu --plugin blas_product
 */
#include <string.h>

#include "cutaway_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif
/* The interface that every BLAS has, Fortran's. */
extern void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha,
                   const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c,
                   const int *ldc);
extern void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
                   const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
                   const int *ldc);
#ifdef __cplusplus
}
#endif

static const ct_argument *argument(const ct_call *call, const char *name) {
    const ct_argument *const *at;
    for (at = call->args; *at; ++at)
        if (strcmp((*at)->name, name) == 0) return *at;
    return NULL;
}
static const ct_tensor *tensor(const ct_call *call, const char *name) {
    const ct_argument *found = argument(call, name);
    return found ? found->tensor : NULL;
}
/* beta and alpha of addmm: 1 unless they are given. */
static double number(const ct_call *call, const char *name) {
    const ct_argument *found = argument(call, name);
    return !found || found->kind == CT_ARG_NONE ? 1 : found->kind == CT_ARG_REAL ? found->real : (double)found->integer;
}
static int is_addmm(const ct_call *call) { return strcmp(call->op, "aten.addmm.default") == 0; }

/* Whether a call is one that BLAS computes; called with the same call before run. */
static int takes(const ct_host *host, const ct_call *call) {
    const ct_tensor *a = tensor(call, is_addmm(call) ? "mat1" : "self"), *b = tensor(call, "mat2");
    const ct_tensor *bias = is_addmm(call) ? tensor(call, "self") : NULL;
    size_t dim;
    if (!a || !b || (is_addmm(call) && !bias)) {
        host->say(host, "an operand is missing");
        return CT_NO;
    }
    if (strcmp(a->dtype, "f32") != 0 && strcmp(a->dtype, "f64") != 0) {
        host->say(host, "BLAS has products of f32 and f64");
        return CT_NO;
    }
    if (strcmp(a->dtype, b->dtype) != 0 || (bias && strcmp(a->dtype, bias->dtype) != 0)) {
        host->say(host, "the operands differ in dtype");
        return CT_NO;
    }
    if (bias && bias->rank != 1) {
        host->say(host, "the bias is not a vector");
        return CT_NO;
    }
    for (dim = 0; dim < 2; ++dim)
        if (a->sizes[dim] == 0 || b->sizes[dim] == 0 || a->sizes[dim] > 2147483647 || b->sizes[dim] > 2147483647) {
            host->say(host, "a matrix is empty, or larger than BLAS can count");
            return CT_NO;
        }
    return CT_YES;
}

/* Whether a matrix lies row by row; else column by column. A single row or column lies as both. */
static int by_rows(const ct_tensor *matrix) {
    return matrix->sizes[1] == 1 ? matrix->strides[0] == 1 || matrix->sizes[0] == 1 : matrix->strides[1] == 1;
}
static int leading(const ct_tensor *matrix) { return (int)matrix->sizes[by_rows(matrix) ? 1 : 0]; }

static int run(const ct_host *host, const ct_call *call) {
    const ct_tensor *a = tensor(call, is_addmm(call) ? "mat1" : "self"), *b = tensor(call, "mat2");
    const ct_tensor *bias = is_addmm(call) ? tensor(call, "self") : NULL, *result = call->results[0];
    const int m = (int)b->sizes[1], n = (int)a->sizes[0], k = (int)a->sizes[1], lda = leading(a), ldb = leading(b);
    const char *ta = by_rows(a) ? "N" : "T", *tb = by_rows(b) ? "N" : "T";
    const double alpha = is_addmm(call) ? number(call, "alpha") : 1, beta = bias ? number(call, "beta") : 0;
    const int single = strcmp(a->dtype, "f32") == 0;
    int row, column;
    (void)host;
    if (!result->memory) return CT_OK;
    for (row = 0; bias && row < n; ++row)
        for (column = 0; column < m; ++column) {
            const size_t from = bias->sizes[0] == 1 ? 0 : (size_t)column, to = (size_t)row * (size_t)m + (size_t)column;
            if (single) ((float *)result->memory)[to] = ((const float *)(const void *)bias->data.data)[from];
            else ((double *)result->memory)[to] = ((const double *)(const void *)bias->data.data)[from];
        }
    if (single) {
        const float one = (float)alpha, two = (float)beta;
        sgemm_(tb, ta, &m, &n, &k, &one, (const float *)(const void *)b->data.data, &ldb,
               (const float *)(const void *)a->data.data, &lda, &two, (float *)result->memory, &m);
    } else {
        dgemm_(tb, ta, &m, &n, &k, &alpha, (const double *)(const void *)b->data.data, &ldb,
               (const double *)(const void *)a->data.data, &lda, &beta, (double *)result->memory, &m);
    }
    return CT_OK;
}

static const ct_library library = {sizeof(ct_library), "product", "Matrix products by BLAS",
                                   "aten.mm.default aten.addmm.default", takes, run};
static const ct_library *const libraries[] = {&library, NULL};
static const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI, 0, "blas_product", "1.0",
                                 "Computes matrix products by the system's BLAS", NULL, NULL, NULL, NULL, NULL,
                                 NULL, NULL, libraries};

const ct_plugin *cutaway_plugin(void) { return &plugin; }
