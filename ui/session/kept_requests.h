#pragma once
// What a model is compiled with unasked (Ctrl+B): the options chosen for it (by SessionController::modelKey), so that
// nothing of one model leaks into another; else those that the user made the default; else the compiler's own.
#include <QString>
#include <QStringList>

#include "cutaway/request.h"

namespace cutaway::ui {

CompileRequest rememberedRequest(const QString& model);
/// For the next compiles of this model, without what is about a single compile: stages, gradients, rules and fuel.
void rememberRequest(const QString& model, const CompileRequest& request);
/// All of it.
void rememberWholeRequest(const QString& model, const CompileRequest& request);

/// The user's default, for models that have no options of their own.
CompileRequest usualRequest();
/// Without what is about a single compile.
void setUsualRequest(const CompileRequest& request);

/// Back to the user's default; where that is what the model has, to the compiler's.
void resetRequest(const QString& model);

/// What differs from the compiler's defaults: "training", "memory budget 0.5", "2 passes off".
QStringList optionWords(const CompileRequest& request);

}  // namespace cutaway::ui
