#include "ui/session/kept_requests.h"

#include <QSettings>
#include <algorithm>

#include "cutaway/settings.h"
#include "ui/models/words.h"
#include "ui/session/session_controller.h"

namespace cutaway::ui {
namespace {

const QString kUsual = QStringLiteral("compile/default");
QString keyOf(const QString& model) { return QStringLiteral("compile/options/") + model; }

constexpr std::string_view kLasting[] = {"mode",    "device",  "strict", "freeze", "parity",        "tf32",
                                         "pytorch", "disable", "enable", "move",   "memory-budget", "solver"};

CompileRequest lasting(const CompileRequest& request) {
    std::vector<std::string> words;
    for (const std::string_view key : kLasting)
        for (const std::string& value : valuesOf(request, key)) {
            words.push_back("--" + std::string(key));
            if (!value.empty()) words.push_back(value);
        }
    auto kept = parseRequest(words);
    return kept ? *std::move(kept) : CompileRequest();
}

CompileRequest requestAt(const QString& key) {
    auto kept = parseRequest(QSettings().value(key).toString().toStdString());
    return kept ? *std::move(kept) : CompileRequest();
}

}  // namespace

CompileRequest rememberedRequest(const QString& model) {
    return QSettings().contains(keyOf(model)) ? requestAt(keyOf(model)) : usualRequest();
}

void rememberWholeRequest(const QString& model, const CompileRequest& request) {
    if (request == usualRequest()) QSettings().remove(keyOf(model));
    else QSettings().setValue(keyOf(model), QString::fromStdString(request.text()));
}

void rememberRequest(const QString& model, const CompileRequest& request) {
    rememberWholeRequest(model, lasting(request));
}

CompileRequest usualRequest() { return requestAt(kUsual); }

void setUsualRequest(const CompileRequest& request) {
    QSettings().setValue(kUsual, QString::fromStdString(lasting(request).text()));
}

void resetRequest(const QString& model) {
    const CompileRequest usual = usualRequest();
    rememberWholeRequest(model, rememberedRequest(model) == usual ? CompileRequest() : usual);
}

QStringList optionWords(const CompileRequest& request) {
    const auto text = [](std::string_view utf8) {
        return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
    };
    const auto number = [](size_t count, const char* one, const char* several) {
        return counted(static_cast<qsizetype>(count), QObject::tr(one), QObject::tr(several));
    };
    QStringList words;
    if (request.mode != Mode::Inference) words << modeTitle(request.mode);
    if (request.target == Target::Cuda) words << QStringLiteral("CUDA");
    if (request.pytorch != kDefaultRelease) words << QObject::tr("PyTorch %1").arg(text(releaseName(request.pytorch)));
    if (request.mode == Mode::Training && request.memoryBudget != 1)
        words << QObject::tr("memory budget %1").arg(request.memoryBudget, 0, 'g', 4);
    if (request.mode == Mode::Training && request.solver != CompileRequest().solver)
        words << QObject::tr("solver %1").arg(text(request.solver));
    if (request.mode == Mode::Jvp && request.strict) words << QObject::tr("strict");
    if (request.target == Target::Cuda && request.tf32 != CompileRequest().tf32)
        words << QObject::tr("TF32 %1").arg(text(tf32Name(request.tf32)));
    if (request.freeze) words << QObject::tr("frozen");
    if (request.parity) words << QObject::tr("PyTorch parity");
    if (request.allStages) words << QObject::tr("all stages");
    if (!request.onlyStage.empty()) words << QObject::tr("only %1").arg(text(request.onlyStage));
    if (request.passesOnly) words << QObject::tr("no schedule");
    if (!request.gradients.empty())
        words << number(request.gradients.size(), "gradient of inputs", "gradients of inputs");
    QStringList names;
    for (const UserRules& rules : request.userRules) names << text(rules.name);
    for (const PluginPass& plugin : request.plugins) names << text(plugin.name);
    if (!names.isEmpty()) words << QObject::tr("with %1").arg(names.join(QStringLiteral(" + ")));
    if (!request.enabledPasses.empty())
        words << QObject::tr("%1 on").arg(number(request.enabledPasses.size(), "optional pass", "optional passes"));
    if (!request.moves.empty()) words << QObject::tr("%1 moved").arg(number(request.moves.size(), "pass", "passes"));
    if (request.fuel) words << QObject::tr("fuel %1").arg(*request.fuel);
    const auto rulesOff =
        static_cast<size_t>(std::count_if(request.disabledPasses.begin(), request.disabledPasses.end(),
                                          [](const std::string& name) { return name.find('/') != std::string::npos; }));
    const size_t passesOff = request.disabledPasses.size() - rulesOff;
    if (rulesOff) words << QObject::tr("%1 off").arg(number(rulesOff, "rule", "rules"));
    if (passesOff) words << QObject::tr("%1 off").arg(number(passesOff, "pass", "passes"));
    return words;
}

}  // namespace cutaway::ui
