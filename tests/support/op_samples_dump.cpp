// Prints every op sample as one JSON object per line, for tests/scripts/record_ops.py.
#include <cstdio>

#include "engine/ops/op_registry.h"
#include "tests/support/op_samples.h"

using namespace cutaway;

int main() {
    for (const Op* op : allOps()) {
        if (op->functional() != nullptr) continue;  // in-place twins share the functional op's samples
        for (const testing::OpSample& sample : testing::samplesOf(*op)) {
            auto built = testing::buildSample(*op, sample.text);
            if (!built) {
                std::fprintf(stderr, "%s: %s: %s\n", sample.name().c_str(), sample.text.c_str(), built.error().message.c_str());
                continue;
            }
            std::string escaped;
            for (char c : sample.text) escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
            std::printf(R"({"name": "%s", "op": "%s", "random": %s, "expands": %s, "sample": "%s", "arguments": %s})" "\n", sample.name().c_str(), op->name().c_str(),
                        op->is(Tag::Random) ? "true" : "false", op->def()->expand == Expand::Never ? "false" : "true", escaped.c_str(), testing::argumentsJson(**built).c_str());
        }
    }
}
