/* Runs the exported program on tensors of a file, and says what came out and how long it took.
   usage: @NAME@_main [--weights F] [--inputs F] [--expect F] [--outputs F] [--threads N] [--repeat N] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "@NAME@.h"

#ifndef FOLDER
#define FOLDER "."
#endif

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int fail(const char* why) {
    fprintf(stderr, "@NAME@: %s\n", why);
    return 1;
}

static int byNumber(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static float half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
                       : exponent == 0 ? ldexpf((float)mantissa, -24)
                                       : ldexpf((float)(mantissa + 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

/* Element `at` of memory as a number; of complex numbers the real part. */
static double number(const CtTensor* t, int64_t at) {
    switch (t->dtype) {
        case CT_U8: case CT_BOOL: return ((const uint8_t*)t->data)[at];
        case CT_I8: return ((const int8_t*)t->data)[at];
        case CT_I16: return ((const int16_t*)t->data)[at];
        case CT_U16: return ((const uint16_t*)t->data)[at];
        case CT_I32: return ((const int32_t*)t->data)[at];
        case CT_U32: return ((const uint32_t*)t->data)[at];
        case CT_I64: return (double)((const int64_t*)t->data)[at];
        case CT_U64: return (double)((const uint64_t*)t->data)[at];
        case CT_F64: return ((const double*)t->data)[at];
        case CT_F32: return ((const float*)t->data)[at];
        case CT_F16: return half(((const uint16_t*)t->data)[at]);
        case CT_BF16: {
            const uint32_t bits = (uint32_t)((const uint16_t*)t->data)[at] << 16;
            float value;
            memcpy(&value, &bits, sizeof value);
            return value;
        }
        case CT_C64: return ((const float*)t->data)[2 * at];
        case CT_C128: return ((const double*)t->data)[2 * at];
        default: return 0;
    }
}

static int64_t elements(const CtTensor* t) {
    int64_t count = t->rank < 0 ? 0 : 1;
    for (int32_t d = 0; d < t->rank; ++d) count *= t->sizes[d];
    return count;
}

/* Where element `i`, counted row by row, lies. */
static int64_t offset(const CtTensor* t, int64_t i) {
    int64_t at = 0;
    for (int32_t d = t->rank; d-- > 0; i /= t->sizes[d]) at += i % t->sizes[d] * t->strides[d];
    return at;
}

static void describe(const char* name, const CtTensor* t) {
    const int64_t count = elements(t);
    double least = INFINITY, most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        const double value = number(t, offset(t, i));
        least = value < least ? value : least;
        most = value > most ? value : most;
        sum += value;
    }
    printf("  %-24s [", name);
    for (int32_t d = 0; d < t->rank; ++d) printf(d > 0 ? ", %lld" : "%lld", (long long)t->sizes[d]);
    printf("]");
    if (count > 0) printf("  min %g  max %g  mean %g", least, most, sum / (double)count);
    printf("\n");
}

/* 1 if the tensors differ by more than rounding. */
static int differs(const char* name, const CtTensor* got, const CtTensor* wanted) {
    const double tolerance = got->dtype == CT_F16 || got->dtype == CT_BF16 ? 2e-2 : 1e-3;
    double largest = 0;
    int same = got->rank == wanted->rank, within = 1;
    for (int32_t d = 0; same && d < got->rank; ++d) same = got->sizes[d] == wanted->sizes[d];
    for (int64_t i = 0; same && i < elements(got); ++i) {
        const double a = number(got, offset(got, i)), b = number(wanted, offset(wanted, i));
        const double error = isnan(a) && isnan(b) ? 0 : a == b ? 0 : fabs(a - b);
        if (!(error <= tolerance * (0.1 + fabs(b)))) within = 0;
        if (!(error <= largest)) largest = error;
    }
    if (!same) printf("  %s DIFFERS: other sizes than expected\n", name);
    else printf("  %s %s: max abs error %g\n", name, within ? "ok" : "DIFFERS", largest);
    return !same || !within;
}

static int fail_for(const char* why, const char* file, const char* name) {
    fprintf(stderr, "@NAME@: %s %s '%s'\n", file, why, name);
    return 1;
}

/* The file's tensor for port `i`: by its name, by "input_0" or "output_0", or, in a file without such names, in the
   order of the file. */
static const CtTensor* pick(const CtTensorFile* file, const CtPort* ports, int32_t count, int32_t i,
                            const char* numbered) {
    char name[32];
    snprintf(name, sizeof name, numbered, (int)i);
    const CtTensor* found = @NAME@_file_tensor(file, ports[i].name);
    if (found == NULL) found = @NAME@_file_tensor(file, name);
    if (found != NULL) return found;
    int32_t place = 0;
    for (int32_t k = 0; k < count; ++k) {
        snprintf(name, sizeof name, numbered, (int)k);
        if (@NAME@_file_tensor(file, ports[k].name) != NULL || @NAME@_file_tensor(file, name) != NULL) return NULL;
        place += k < i && ports[k].rank >= 0;
    }
    return place < @NAME@_file_count(file) ? @NAME@_file_tensor(file, @NAME@_file_name(file, place)) : NULL;
}

int main(int argc, char** argv) {
    const char *weights = FOLDER "/weights.safetensors", *inputs = FOLDER "/inputs.safetensors", *expect = NULL,
               *outputs = NULL;
    int threads = 0, repeat = 1;
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        const int known = !strcmp(option, "--weights")   ? (weights = value, 1)
                          : !strcmp(option, "--inputs")  ? (inputs = value, 1)
                          : !strcmp(option, "--expect")  ? (expect = value, 1)
                          : !strcmp(option, "--outputs") ? (outputs = value, 1)
                          : !strcmp(option, "--threads") ? (threads = value ? atoi(value) : 0, 1)
                          : !strcmp(option, "--repeat")  ? (repeat = value ? atoi(value) : 0, 1)
                                                         : 0;
        if (!known || value == NULL || repeat < 1 || threads < 0) {
            fprintf(stderr, "usage: %s [--weights F] [--inputs F] [--expect F] [--outputs F] [--threads N] [--repeat N]\n",
                    argv[0]);
            return 2;
        }
    }

    const CtProgramInfo* info = @NAME@_info();
    CtProgram* program = @NAME@_open(weights);
    if (program == NULL) return fail(@NAME@_error());
    CtTensorFile* given = info->inputCount > 0 ? @NAME@_read(inputs) : NULL;
    if (info->inputCount > 0 && given == NULL) return fail(@NAME@_error());
    CtTensor* in = calloc((size_t)info->inputCount + 1, sizeof *in);
    for (int32_t i = 0; i < info->inputCount; ++i) {
        const CtTensor* found = pick(given, info->inputs, info->inputCount, i, "input_%d");
        in[i].rank = -1;
        if (found != NULL) in[i] = *found;
        else if (info->inputs[i].rank >= 0) return fail_for("has no tensor for input", inputs, info->inputs[i].name);
    }

    const CtParallel parallel = @NAME@_parallel(threads);
    CtContext* context = @NAME@_context(program, &parallel);
    if (context == NULL) return fail(@NAME@_error());
    CtTensor* out = calloc((size_t)info->outputCount + 1, sizeof *out);
    double* times = calloc((size_t)repeat + 1, sizeof *times);
    for (int i = 0; i <= repeat; ++i) { /* the first run plans and packs */
        const double begin = milliseconds();
        if (@NAME@_run(context, in, out) != 0) return fail(@NAME@_context_error(context));
        times[i] = milliseconds() - begin;
        if (i == 0 && repeat == 1) break; /* buffers that the graph writes to have moved on in a second run */
    }
    for (int32_t i = 0; i < info->outputCount; ++i) describe(info->outputs[i].name, &out[i]);

    int status = 0;
    if (expect != NULL) {
        CtTensorFile* file = @NAME@_read(expect);
        if (file == NULL) return fail(@NAME@_error());
        for (int32_t i = 0; i < info->outputCount; ++i) {
            if (out[i].rank < 0) continue;
            const CtTensor* wanted = pick(file, info->outputs, info->outputCount, i, "output_%d");
            if (wanted != NULL) status |= differs(info->outputs[i].name, &out[i], wanted);
            else status = fail_for("has no tensor for output", expect, info->outputs[i].name);
        }
        @NAME@_file_close(file);
    }
    if (outputs != NULL) {
        const char** names = calloc((size_t)info->outputCount + 1, sizeof *names);
        CtTensor* tensors = calloc((size_t)info->outputCount + 1, sizeof *tensors);
        int32_t count = 0;
        for (int32_t i = 0; i < info->outputCount; ++i) {
            if (out[i].rank < 0) continue;
            names[count] = info->outputs[i].name;
            tensors[count++] = out[i];
        }
        if (@NAME@_write(outputs, names, tensors, count) != 0) return fail(@NAME@_error());
        free(names);
        free(tensors);
    }
    if (repeat > 1) {
        qsort(times + 1, (size_t)repeat, sizeof *times, byNumber);
        printf("median %.3f ms, best %.3f ms of %d, %d threads\n", times[1 + repeat / 2], times[1], repeat,
               (int)parallel.threads);
    }
    @NAME@_release(context);
    @NAME@_close(program);
    if (given != NULL) @NAME@_file_close(given);
    free(in);
    free(out);
    free(times);
    return status;
}
