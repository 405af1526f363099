/* A pass: makes one call of a product and the sum that reads it.
 *
 *     mul: "f32[8, 16]" = aten.mul.Tensor(a, b)
 *     add: "f32[8, 16]" = aten.add.Tensor(c, mul)    ->    addcmul: "f32[8, 16]" = aten.addcmul.default(c, a, b)
 *
 * It leaves alone: products with other readers, operands that are numbers, sums with alpha, mixed dtypes.
 *
 *     cc -shared -fPIC -o fuse_addcmul.so fuse_addcmul.c     (and put it into ~/.local/share/cutaway/plugins)
 *     cutaway-cli steps MODEL --plugin fuse_addcmul
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cutaway_plugin.h"

typedef struct span {
    const char *at;
    size_t size;
} span;

/* A statement, `name: "type" = op(arguments)`, and how often its value is read. */
typedef struct statement {
    span line, name, type, op, arguments;
    int readers;
    int gone;
} statement;

typedef struct table {
    statement *items;
    size_t count, capacity;
    size_t *slots; /* of names: number of the statement + 1 */
    size_t slot_count;
} table;

static int is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
static int equals(span a, const char *b) { return a.size == strlen(b) && memcmp(a.at, b, a.size) == 0; }
static int same(span a, span b) { return a.size == b.size && memcmp(a.at, b.at, a.size) == 0; }
static span none(void) {
    span s = {"", 0};
    return s;
}
static span between(const char *begin, const char *end) {
    span s = {begin, (size_t)(end - begin)};
    return s;
}

static size_t *slot_of(const table *all, span name) {
    size_t hash = 5381, i, at;
    for (i = 0; i < name.size; ++i) hash = hash * 33 + (unsigned char)name.at[i];
    for (at = hash % all->slot_count; all->slots[at] != 0; at = (at + 1) % all->slot_count)
        if (same(all->items[all->slots[at] - 1].name, name)) break;
    return &all->slots[at];
}
static statement *find(const table *all, span name) {
    const size_t number = *slot_of(all, name);
    return number == 0 ? NULL : &all->items[number - 1];
}

/* Takes `name: "type" = op(arguments)` apart; of a parameter, `name: "type",`, name and type. */
static void read_statement(span line, statement *out) {
    const char *at = line.at, *end = line.at + line.size, *begin;
    memset(out, 0, sizeof *out);
    out->line = line;
    out->name = out->type = out->op = out->arguments = none();
    while (at < end && *at == ' ') ++at;
    for (begin = at; at < end && is_word(*at);) ++at;
    if (at == begin || at >= end || *at != ':' || end - at < 4 || at[2] != '"') return;
    out->name = between(begin, at);
    for (begin = at += 3; at < end && *at != '"';) ++at;
    if (at == end) return;
    out->type = between(begin, at++);
    if (end - at < 4 || memcmp(at, " = ", 3) != 0) return;
    for (begin = at += 3; at < end && *at != '(';) ++at;
    if (at == end || end[-1] != ')') return;
    out->op = between(begin, at);
    out->arguments = between(at + 1, end - 1);
}

static int add_statement(table *all, span line) {
    if (all->count == all->capacity) {
        statement *grown;
        all->capacity = all->capacity == 0 ? 256 : 2 * all->capacity;
        grown = (statement *)realloc(all->items, all->capacity * sizeof *grown);
        if (grown == NULL) return 0;
        all->items = grown;
    }
    read_statement(line, &all->items[all->count++]);
    return 1;
}

/* Lines of the text; of a head in one line, its parameters, too. */
static int read_lines(table *all, ct_text text) {
    const char *at = text.data, *end = text.data + text.size;
    while (at < end) {
        const char *stop = (const char *)memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        if (stop - at > 4 && memcmp(at, "def ", 4) == 0) {
            const char *part = at, *next;
            for (next = at; next < stop; ++next)
                if (*next == '(' || (*next == ',' && next[1] == ' ' && next[-1] == '"')) {
                    if (!add_statement(all, between(part, next))) return 0;
                    part = next + 1;
                }
            if (!add_statement(all, between(part, stop))) return 0;
        } else if (!add_statement(all, between(at, stop))) {
            return 0;
        }
        at = stop + 1;
    }
    return 1;
}

static int index_names(table *all, ct_text text) {
    size_t i;
    const char *at = text.data, *end = text.data + text.size;
    all->slot_count = 2 * all->count + 1;
    all->slots = (size_t *)calloc(all->slot_count, sizeof *all->slots);
    if (all->slots == NULL) return 0;
    for (i = 0; i < all->count; ++i)
        if (all->items[i].name.size > 0) *slot_of(all, all->items[i].name) = i + 1;
    while (at < end) { /* every word is a reader, but for parts of operators' names, and the one that names the statement */
        const char *begin = at;
        while (at < end && is_word(*at)) ++at;
        if (at > begin && (begin == text.data || begin[-1] != '.')) {
            statement *read = find(all, between(begin, at));
            if (read != NULL && read->name.at != begin) ++read->readers;
        }
        ++at;
    }
    return 1;
}

/* "a, b" and no more. */
static int two_names(span arguments, span *first, span *second) {
    const char *at = arguments.at, *end = at + arguments.size;
    while (at < end && is_word(*at)) ++at;
    if (at == arguments.at || end - at < 3 || memcmp(at, ", ", 2) != 0) return 0;
    *first = between(arguments.at, at);
    *second = between(at + 2, end);
    for (at += 2; at < end; ++at)
        if (!is_word(*at)) return 0;
    return 1;
}

/* "f32" of "f32[8, 16]". */
static span dtype(const table *all, span name) {
    const statement *made = find(all, name);
    size_t i = 0;
    if (made == NULL) return none();
    while (i < made->type.size && made->type.at[i] != '[') ++i;
    return i == made->type.size ? none() : between(made->type.at, made->type.at + i);
}

/* The product that `add` may take in, and the other operand. */
static statement *product_of(const table *all, const statement *add, span *other, span *a, span *b) {
    span left, right, name;
    int turn;
    if (!equals(add->op, "aten.add.Tensor") || !two_names(add->arguments, &left, &right) || same(left, right))
        return NULL;
    for (turn = 0; turn < 2; ++turn) {
        statement *mul = find(all, turn == 0 ? right : left);
        *other = turn == 0 ? left : right;
        if (mul == NULL || !equals(mul->op, "aten.mul.Tensor") || mul->readers != 1 || mul->gone) continue;
        if (!two_names(mul->arguments, a, b)) continue;
        name = dtype(all, add->name);
        if (name.size == 0 || !same(dtype(all, *a), name) || !same(dtype(all, *b), name) ||
            !same(dtype(all, *other), name))
            continue;
        return mul;
    }
    return NULL;
}

static int run(const ct_host *host, ct_text graph) {
    table all;
    size_t i, used = 0, fused = 0, size = 2 * graph.size + 4096;
    char *out = (char *)malloc(size), name[512];
    const char *limit_text = host->setting(host, "most");
    const size_t most = limit_text != NULL && atol(limit_text) > 0 ? (size_t)atol(limit_text) : (size_t)-1;
    int failed;
    memset(&all, 0, sizeof all);
    failed = out == NULL || !read_lines(&all, graph) || !index_names(&all, graph);
    if (failed) host->fail(host, "there is not enough memory");
    for (i = 0; !failed && i < all.count && fused < most; ++i) {
        span other, a, b;
        statement *add = &all.items[i], *mul = product_of(&all, add, &other, &a, &b);
        if (mul == NULL || add->name.size >= sizeof name) continue;
        mul->gone = 1;
        add->op = none();
        ++fused;
        memcpy(name, add->name.at, add->name.size);
        name[add->name.size] = '\0';
        host->rewrite(host, name, "addcmul", "a product and the sum that reads it are one call");
    }
    if (!failed && fused > 0) {
        /* The text again, without products that are gone, and with other statements for their sums. */
        const char *at = graph.data;
        for (i = 0; i < all.count; ++i) {
            statement *line = &all.items[i];
            span other, a, b, left, right;
            const char *end = line->line.at + line->line.size + 1;
            if (line->gone) {
                memcpy(out + used, at, (size_t)(line->line.at - at));
                used += (size_t)(line->line.at - at);
                at = end;
            } else if (line->op.size == 0 && line->arguments.size > 0) {
                statement *mul;
                two_names(line->arguments, &left, &right);
                mul = find(&all, right);
                other = left;
                if (mul == NULL || !mul->gone) {
                    mul = find(&all, left);
                    other = right;
                }
                two_names(mul->arguments, &a, &b);
                memcpy(out + used, at, (size_t)(line->line.at - at));
                used += (size_t)(line->line.at - at);
                used += (size_t)sprintf(out + used, "    %.*s: \"%.*s\" = aten.addcmul.default(%.*s, %.*s, %.*s)\n",
                                        (int)line->name.size, line->name.at, (int)line->type.size, line->type.at,
                                        (int)other.size, other.at, (int)a.size, a.at, (int)b.size, b.at);
                at = end;
            }
        }
        memcpy(out + used, at, (size_t)(graph.data + graph.size - at));
        used += (size_t)(graph.data + graph.size - at);
        {
            const ct_text made = {out, used};
            host->emit(host, "graph", made);
        }
    }
    free(all.items);
    free(all.slots);
    free(out);
    return failed ? CT_FAILED : CT_OK;
}

static const ct_pass fuse = {sizeof(ct_pass),
                             "fuse",
                             "Makes one call of a product and the sum that reads it",
                             "post_grad_custom_post_pass",
                             NULL,
                             "most=0: How many it makes at most; 0: all",
                             run};
static const ct_pass *const passes[] = {&fuse, NULL};

static const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI, 0, "fuse_addcmul", "1.0",
                                 "Fuses mul and add to addcmul", NULL, passes, NULL, NULL, NULL};

const ct_plugin *cutaway_plugin(void) { return &plugin; }
