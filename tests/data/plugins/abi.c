/* One plugin, as its header, its size or its version were others: -DKIND=... */
#include "cutaway_plugin.h"

#define OLD 1     /* as if oracles and what follows had not been in the header yet */
#define NEWER 2   /* as if there were more members than this program knows */
#define OTHER 3   /* another ABI */
#define NONE 4    /* no plugin */
#define NAMELESS 5
#define PLACELESS 6
#define PROCESSES 7

static int run(const ct_host *host, ct_text graph) {
    (void)host, (void)graph;
    return CT_OK;
}
static const ct_pass pass = {sizeof(ct_pass), "nothing", "Does nothing",
#if KIND == PLACELESS
                             "somewhere",
#else
                             "joint_custom_pre_pass",
#endif
                             0, 0, run};
static const ct_pass *const passes[] = {&pass, 0};

static const struct {
    ct_plugin plugin;
    const void *more[4];
} made = {{
#if KIND == OLD
              offsetof(ct_plugin, oracles),
#elif KIND == NEWER
              sizeof(ct_plugin) + 4 * sizeof(void *),
#else
              sizeof(ct_plugin),
#endif
#if KIND == OTHER
              CT_ABI + 1,
#else
              CT_ABI,
#endif
#if KIND == PROCESSES
              1,
#else
              0,
#endif
#if KIND == NAMELESS
              "No Name",
#else
              "abi",
#endif
              "1", "Its header is another", 0, passes, 0,
#if KIND == OLD
              (const ct_oracle *const *)1, (const ct_coloring *const *)1},
#else
              0, 0},
#endif
          {(const void *)1, (const void *)1, (const void *)1, (const void *)1}};

const ct_plugin *cutaway_plugin(void) {
#if KIND == NONE
    (void)made;
    return 0;
#else
    return &made.plugin;
#endif
}
