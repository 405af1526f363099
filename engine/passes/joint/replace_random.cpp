#include "engine/passes/joint/replace_random.h"

#include <map>

#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

Value seedFor(const Match& m, GraphBuilder& builder) {
    const Value seeds = builder.call("prims.inductor_seeds.default", {1, m.root().tensor().device});
    return builder.call("prims.inductor_lookup_seed.default", {seeds, 0});
}
Values buildRandom(const Match& m, GraphBuilder& builder) {
    const std::string_view overload = m.root().op().name();
    const bool normal = overload.starts_with("aten.randn.");
    const Value drawn = builder.call("prims.inductor_random.default",
                                     {m["size"], seedFor(m, builder), Argument(normal ? "randn" : "rand")});
    return convert(drawn, m.root().tensor().dtype);
}
Values buildRandint(const Match& m, GraphBuilder& builder) {
    const Argument low = m.pattern().slotOf("low") >= 0 ? m["low"] : Argument(0);
    const Value drawn =
        builder.call("prims.inductor_randint.default", {low, m["high"], m["size"], seedFor(m, builder)});
    return convert(drawn, m.root().tensor().dtype);
}

constexpr std::string_view kWhyRandom = "the numbers can be drawn again from the same seed";
constexpr Rule kRandomRules[] = {
    {.name = "replace_random",
     .find = "y = aten.(rand|randn).default(size, ...); return y",
     .build = buildRandom,
     .why = kWhyRandom},
    {.name = "replace_random_generator",
     .find = "y = aten.(rand|randn).generator(size, generator=None, ...); return y",
     .build = buildRandom,
     .why = kWhyRandom},
    {.name = "replace_randint",
     .find = "y = aten.randint.low(low, high, size, ...); return y",
     .build = buildRandint,
     .why = kWhyRandom},
};

bool isOnlyLookedUp(const Node& maker) {
    return maker.arg(0).asInt() && std::all_of(maker.users().begin(), maker.users().end(), [](const Node* reader) {
               return reader->isCall("prims.inductor_lookup_seed.default") && reader->arg(1).asInt();
           });
}
/// One inductor_seeds per device, where its first one stands; seeds are numbered as their readers stand.
Result<bool> fuseSeeds(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, fuseSeeds(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    std::vector<std::pair<Device, std::vector<Node*>>> devices;  // in the order of their first seeds
    for (Node& node : graph.nodes()) {
        if (!node.isCall("prims.inductor_seeds.default")) continue;
        if (!isOnlyLookedUp(node)) {  // a program may make seeds of its own
            const Refusing no(rewriter, "fuse_seed_creation", node);
            no("its seeds are not only looked up by number");
            continue;
        }
        const Device device = node.tensor().device;
        auto found =
            std::find_if(devices.begin(), devices.end(), [&](const auto& entry) { return entry.first == device; });
        if (found == devices.end()) found = devices.insert(devices.end(), {device, {}});
        found->second.push_back(&node);
    }
    for (const auto& [device, makers] : devices) {
        for (const Node* maker : makers) {
            const Refusing no(rewriter, "fuse_seed_creation", *maker);
            if (makers.size() < 2) no("no other call makes seeds on ", device);
            else if (maker != makers[0])
                no.about(makers[0], "its seeds are made by ", *makers[0], ", the first call that makes seeds on ",
                         device);
        }
        if (makers.size() < 2) continue;
        if (rewriter.begin("fuse_seed_creation", *makers[0], "one call makes all seeds of a device") != Go::Yes)
            return changed;
        GraphBuilder builder = rewriter.builder(graph, makers[0], *makers[0]);
        int64_t count = 0;
        for (const Node* maker : makers) count += *maker->arg(0).asInt();
        const Value all = builder.call("prims.inductor_seeds.default", {count, device});
        if (builder.error()) return *builder.error();
        int64_t first = 0;
        for (Node* maker : makers) {
            for (Node* reader : std::vector<Node*>(maker->users()))
                graph.setArg(*reader, 1, first + *reader->arg(1).asInt());
            first += *maker->arg(0).asInt();
            // A looked-up seed has one type whatever the number of seeds, so no reader has to be typed again.
            graph.replaceUses(*maker, *all.node());
            graph.erase(*maker);
        }
        changed = true;
    }
    return changed;
}

}  // namespace

std::span<const Rule> randomRules() { return kRandomRules; }

Result<bool> replaceRandom(Module& module, Rewriter& rewriter) {
    CT_TRY(const bool replaced, rewriter.applyRules(module, kRandomRules));
    CT_TRY(const bool fused, fuseSeeds(module, rewriter));
    return replaced || fused;
}

}  // namespace cutaway
