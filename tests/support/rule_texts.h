#pragma once
// Rules and small graphs as tests write them: statements on one line, separated by "; ".
#include <QString>
#include <memory>

#include "engine/rewrite/matcher.h"
#include "engine/text/parse.h"

namespace cutaway::testing {

/// A graph of `body` over x and y, both f32[4, 4].
inline std::unique_ptr<Module> parsed(const QString& body) {
    auto module = parseText("def forward(x: \"f32[4, 4]\", y: \"f32[4, 4]\"):\n    " +
                            body.trimmed().replace("; ", "\n    ").toStdString() + "\n");
    if (!module) qFatal("%s", module.error().text().c_str());
    return std::move(*module);
}

/// The text of a rule named r.
inline QString rule(const QString& find, const QString& replace) {
    return "rule r\n  find\n    " + QString(find).replace("; ", "\n    ") + "\n  replace\n    " +
           QString(replace).replace("; ", "\n    ") + "\n";
}

inline LoadedRules loaded(const QString& text) {
    auto rules = loadRules(text.toStdString());
    if (!rules) qFatal("%s", rules.error().text().c_str());
    return std::move(*rules);
}

}  // namespace cutaway::testing
