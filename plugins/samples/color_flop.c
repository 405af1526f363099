/* A colouring: how many floating-point operations each product takes, from the types that the text says.
 *
 *     cc -shared -fPIC -o color_flop.so color_flop.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cutaway_plugin.h"

enum { MOST_NAMES = 65536, NAME_SIZE = 128, MOST_DIMS = 8 };

/* A value: its name and the sizes of its type, as far as they are numbers. */
typedef struct value {
    char name[NAME_SIZE];
    double sizes[MOST_DIMS], elements;
    int rank;
} value;

/* Reads `name: "f32[8, 16]"` at `at`; NULL if nothing like that stands there, else what follows. */
static const char *read_value(const char *at, const char *end, value *out) {
    const char *begin = at;
    size_t size;
    while (at < end && (*at == '_' || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')))
        ++at;
    size = (size_t)(at - begin);
    if (size == 0 || size >= NAME_SIZE || end - at < 4 || memcmp(at, ": \"", 3) != 0) return NULL;
    memcpy(out->name, begin, size);
    out->name[size] = '\0';
    out->rank = 0;
    out->elements = 1;
    for (at += 3; at < end && *at != '[' && *at != '"';) ++at;
    while (at < end && *at != ']' && *at != '"') {
        char *next;
        const double number = strtod(++at, &next);
        if (next == at) out->elements = 0; /* a symbol: not known */
        else if (out->rank < MOST_DIMS) {
            out->sizes[out->rank++] = number;
            out->elements *= number;
        }
        at = next;
        while (at < end && *at != ',' && *at != ']' && *at != '"') ++at;
    }
    while (at < end && *at != '"') ++at;
    return at < end ? at + 1 : end;
}

static const value *find(const value *all, size_t count, const char *at, const char *end) {
    const char *begin = at;
    while (at < end && *at != ',' && *at != ')' && *at != ' ') ++at;
    while (count-- > 0)
        if (strlen(all[count].name) == (size_t)(at - begin) && memcmp(all[count].name, begin, (size_t)(at - begin)) == 0)
            return &all[count];
    return NULL;
}

/* The operand after so many commas that stand in no list. */
static const value *operand(const value *all, size_t count, const char *at, const char *end, int number) {
    int depth = 0;
    for (; number > 0 && at < end; ++at) {
        if (*at == '[' || *at == '(') ++depth;
        if (*at == ']' || *at == ')') --depth;
        if (*at == ',' && depth == 0 && --number == 0) {
            at += 2;
            break;
        }
    }
    return at < end ? find(all, count, at, end) : NULL;
}

typedef struct product {
    const char *op;
    int operand; /* the one whose last size (for a convolution: whose sizes after the first) is summed over */
    int window;
} product;
static const product products[] = {
    {"aten.mm.default(", 0, 0},          {"aten.bmm.default(", 0, 0},         {"aten.addmm.default(", 1, 0},
    {"aten.baddbmm.default(", 1, 0},     {"aten.linear.default(", 0, 0},      {"aten.matmul.default(", 0, 0},
    {"aten.convolution.default(", 1, 1}, {"aten.conv2d.default(", 1, 1},
};

static int run(const ct_host *host, ct_text graph) {
    const char *at = graph.data, *end = graph.data + graph.size;
    value *all = (value *)malloc(MOST_NAMES * sizeof *all);
    size_t count = 0;
    if (all == NULL) {
        host->fail(host, "there is not enough memory");
        return CT_FAILED;
    }
    for (; at < end; ++at) { /* values begin after a blank or a bracket */
        const char *rest;
        value made;
        if (at > graph.data && at[-1] != ' ' && at[-1] != '(' && at[-1] != '\n') continue;
        rest = read_value(at, end, &made);
        if (rest == NULL || count == MOST_NAMES) continue;
        all[count++] = made;
        if (end - rest > 3 && memcmp(rest, " = ", 3) == 0) {
            const char *line_end = (const char *)memchr(rest, '\n', (size_t)(end - rest));
            size_t i;
            double flop = 0;
            const char *why = "no product";
            char sentence[160];
            if (line_end == NULL) line_end = end;
            for (i = 0; i < sizeof products / sizeof *products; ++i) {
                const size_t size = strlen(products[i].op);
                const value *read;
                int dim;
                double summed = 1;
                if ((size_t)(line_end - rest) < size + 3 || memcmp(rest + 3, products[i].op, size) != 0) continue;
                read = operand(all, count, rest + 3 + size, line_end, products[i].operand);
                if (read == NULL || read->rank == 0) continue;
                if (products[i].window)
                    for (dim = 1; dim < read->rank; ++dim) summed *= read->sizes[dim];
                else summed = read->sizes[read->rank - 1];
                flop = 2 * made.elements * summed;
                snprintf(sentence, sizeof sentence, "%.0f elements, each a sum of %.0f products", made.elements, summed);
                why = sentence;
            }
            host->color(host, made.name, flop, NULL, why);
        }
        at = rest;
    }
    free(all);
    return CT_OK;
}

static const ct_coloring flop = {sizeof(ct_coloring), "flop", "Floating-point operations of products", "FLOP", run};
static const ct_coloring *const colorings[] = {&flop, NULL};

static const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI, 0, "color_flop", "1.0",
                                 "Colours calls by their floating-point operations", NULL, NULL, NULL, NULL, colorings};

const ct_plugin *cutaway_plugin(void) { return &plugin; }
