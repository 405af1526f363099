#pragma once
// A row of the tree of steps; for the model's own files.
#include "ui/models/steps_model.h"

namespace cutaway::ui {

struct StepsModel::Item {
    Kind kind = Kind::Opened;
    int step = -1;
    int row = 0;
    RewriteInfo rewrite;
    QString graphName, stage;
    Item* parent = nullptr;
    std::vector<std::unique_ptr<Item>> children;
    bool asked = false, answered = false;  // for the rewrites of a pass

    Item* add(std::unique_ptr<Item> child) {
        child->parent = this;
        child->row = static_cast<int>(children.size());
        children.push_back(std::move(child));
        return children.back().get();
    }
    static std::unique_ptr<Item> make(Kind kind, int step = -1) {
        auto item = std::make_unique<Item>();
        item->kind = kind;
        item->step = step;
        return item;
    }
};

}  // namespace cutaway::ui
