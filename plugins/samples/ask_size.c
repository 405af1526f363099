/* An oracle: a graph fails while it has more than a few statements.
 *
 *     cc -shared -fPIC -o ask_size.so ask_size.c
 *     cutaway-cli minify MODEL --oracle ask_size
 */
#include <stdio.h>
#include <string.h>

#include "cutaway_plugin.h"

enum { MOST = 3 };

static int run(const ct_host *host, ct_text graph) {
    const char *at = graph.data, *end = graph.data + graph.size;
    int statements = 0;
    char sentence[80];
    for (; at + 3 <= end; ++at)
        if (memcmp(at, " = ", 3) == 0) ++statements;
    snprintf(sentence, sizeof sentence, "%d statements", statements);
    host->say(host, sentence);
    return statements > MOST ? CT_YES : CT_NO;
}

static const ct_oracle size = {sizeof(ct_oracle), "size", "Fails while there are more than three statements", run};
static const ct_oracle *const oracles[] = {&size, NULL};

static const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI, 0, "ask_size", "1.0",
                                 "Asks how large a graph is", NULL, NULL, NULL, oracles, NULL};

const ct_plugin *cutaway_plugin(void) { return &plugin; }
