// Prints every op with its samples as one JSON object per line, for tests/scripts/record_ops.py.
#include <cstdio>

#include "engine/ops/op_registry.h"
#include "tests/support/op_samples.h"

using namespace cutaway;

int main() {
    for (const Op* op : allOps()) {
        if (op->functional() != nullptr) continue;  // in-place twins share the functional op's samples
        std::string samples;
        for (const testing::OpSample& sample : testing::samplesOf(*op)) {
            samples += samples.empty() ? "\"" : ", \"";
            for (char c : sample.text) samples += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
            samples += '"';
        }
        if (samples.empty()) continue;
        std::printf(R"({"op": "%s", "random": %s, "expands": %s, "samples": [%s]})"
                    "\n",
                    op->name().c_str(), op->is(Tag::Random) ? "true" : "false",
                    op->def()->expand == Expand::Never ? "false" : "true", samples.c_str());
    }
}
