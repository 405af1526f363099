#include "tests/support/graphs.h"

#include <QTest>

#include "engine/text/parse.h"

namespace cutaway::testing {

std::unique_ptr<Module> graph(const char* text) {
    auto parsed = parseText(text);
    if (parsed) return std::move(*parsed);
    QTest::qFail(parsed.error().text().c_str(), __FILE__, __LINE__);
    auto empty = std::make_unique<Module>();
    empty->graph().output(Argument());
    return empty;
}

}  // namespace cutaway::testing
