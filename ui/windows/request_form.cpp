#include "ui/windows/request_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QSpinBox>
#include <algorithm>
#include <limits>

#include "ui/windows/number_box.h"

namespace cutaway::ui {
namespace {

using FieldKind = Setting::Kind;

QString textOf(std::string_view utf8) { return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size())); }
/// What the request holds, or else the option's initial value.
QString valueOf(const CompileRequest& from, const Setting& setting) {
    const std::vector<std::string> values = valuesOf(from, setting.key);
    return values.empty() ? textOf(setting.initial) : QString::fromStdString(values.front());
}

/// The label with a key of its own: its first letter that no label before it has taken.
QString withKey(const QString& label, QString& taken) {
    for (qsizetype i = 0; i < label.size(); ++i) {
        if (!label[i].isLetter() || taken.contains(label[i], Qt::CaseInsensitive)) continue;
        taken += label[i];
        return QString(label).insert(i, QChar('&'));
    }
    return label;
}

QComboBox* choices(const Setting& setting, const CompileRequest& from) {
    auto* box = new QComboBox;
    for (const QString& choice : textOf(setting.choices).split(QChar(' '))) box->addItem(choice, choice);
    box->setCurrentIndex(box->findData(valueOf(from, setting)));
    return box;
}
QDoubleSpinBox* real(const Setting& setting, const CompileRequest& from) {
    auto* box = new NumberBox;
    box->setRange(setting.least, setting.most);
    box->setDecimals(3);
    box->setSingleStep((setting.most - setting.least) / 20);
    box->setValue(valueOf(from, setting).toDouble());
    return box;
}
/// An initial value that is not a number ("no limit") stands below the least one.
QSpinBox* integer(const Setting& setting, const CompileRequest& from) {
    auto* box = new QSpinBox;
    const int least = static_cast<int>(setting.least);
    box->setRange(least - 1, static_cast<int>(std::min(setting.most, double(std::numeric_limits<int>::max()))));
    box->setSpecialValueText(textOf(setting.initial));
    bool number = false;
    const int value = valueOf(from, setting).toInt(&number);
    box->setValue(number ? value : least - 1);
    return box;
}
QLineEdit* list(const Setting& setting, const CompileRequest& from) {
    auto* line = new QLineEdit;
    QStringList values;
    for (const std::string& value : valuesOf(from, setting.key)) values << QString::fromStdString(value);
    line->setText(values.join(QChar(' ')));
    line->setPlaceholderText(textOf(setting.choices) + QChar(' ') + textOf(setting.choices) + QStringLiteral(" …"));
    return line;
}

/// The values that a field holds, one for each time that its option is given; "" of a flag.
QStringList valuesIn(const QWidget* field, const Setting& setting) {
    static const QRegularExpression gap(QStringLiteral("[\\s;]+"));
    switch (setting.kind) {
        case FieldKind::Flag:
            return qobject_cast<const QCheckBox*>(field)->isChecked() ? QStringList{QString()} : QStringList();
        case FieldKind::Choice:
        case FieldKind::Name: {
            const QString name = qobject_cast<const QComboBox*>(field)->currentData().toString();
            return name.isEmpty() ? QStringList() : QStringList{name};
        }
        case FieldKind::Real: return {QString::number(qobject_cast<const QDoubleSpinBox*>(field)->value())};
        case FieldKind::Integer: {
            const auto* box = qobject_cast<const QSpinBox*>(field);
            return box->value() == box->minimum() ? QStringList() : QStringList{QString::number(box->value())};
        }
        case FieldKind::List:
        case FieldKind::File: return qobject_cast<const QLineEdit*>(field)->text().split(gap, Qt::SkipEmptyParts);
    }
    return {};
}

}  // namespace

RequestForm::RequestForm(const CompileRequest& from, QString takenKeys, QWidget* parent)
    : QWidget(parent), m_form(new QFormLayout(this)) {
    for (const Setting& setting : settings()) {
        if (!setting.belongsTo(kRequest) || setting.label.empty()) continue;
        m_fields.push_back(makeField(setting, from));
        QWidget* const field = m_fields.back().widget;
        field->setObjectName(textOf(setting.key));
        field->setToolTip(textOf(setting.what));
        const QString label = withKey(textOf(setting.label), takenKeys);
        if (auto* box = qobject_cast<QCheckBox*>(field)) {
            box->setText(label);
            m_form->addRow(QString(), box);
        } else {
            m_form->addRow(label, field);
        }
    }
    connect(this, &RequestForm::changed, this, [this](const QString& option) {
        if (option == QStringLiteral("mode") || option == QStringLiteral("device")) showMeant();
    });
    showMeant();
}

RequestForm::Field RequestForm::makeField(const Setting& setting, const CompileRequest& from) {
    const auto say = [this, key = textOf(setting.key)] { emit changed(key); };
    switch (setting.kind) {
        case FieldKind::Flag: {
            auto* box = new QCheckBox;
            box->setChecked(!valuesOf(from, setting.key).empty());
            connect(box, &QCheckBox::toggled, this, say);
            return {&setting, box};
        }
        case FieldKind::Choice:
        case FieldKind::Name: {
            auto* box = setting.kind == FieldKind::Name ? new QComboBox : choices(setting, from);
            connect(box, &QComboBox::currentIndexChanged, this, say);
            return {&setting, box};
        }
        case FieldKind::Real: return {&setting, real(setting, from)};
        case FieldKind::Integer: return {&setting, integer(setting, from)};
        case FieldKind::List:
        case FieldKind::File: break;
    }
    return {&setting, list(setting, from)};
}

QWidget* RequestForm::fieldOf(std::string_view option) const {
    for (const Field& field : m_fields)
        if (field.setting->key == option) return field.widget;
    return nullptr;
}

Mode RequestForm::mode() const {
    const auto* box = qobject_cast<const QComboBox*>(fieldOf("mode"));
    return modeOf(box->currentText().toStdString()).value_or(Mode::Inference);
}

bool RequestForm::means(const Setting& setting) const {
    const auto* device = qobject_cast<const QComboBox*>(fieldOf("device"));
    return setting.isFor(mode()) && (!setting.ofGpus || device->currentText() == QStringLiteral("cuda"));
}

void RequestForm::showMeant() {
    for (const Field& field : m_fields) m_form->setRowVisible(field.widget, means(*field.setting));
}

std::vector<std::string> RequestForm::words() const {
    std::vector<std::string> words;
    for (const Field& field : m_fields) {
        if (!means(*field.setting)) continue;
        for (const QString& value : valuesIn(field.widget, *field.setting)) {
            words.push_back("--" + std::string(field.setting->key));
            if (field.setting->kind != FieldKind::Flag) words.push_back(value.toStdString());
        }
    }
    return words;
}

void RequestForm::offer(std::string_view option, const QStringList& names) {
    auto* box = qobject_cast<QComboBox*>(fieldOf(option));
    const QVariant chosen = box->currentData();
    const QSignalBlocker quiet(box);
    box->clear();
    for (const Field& field : m_fields)
        if (field.widget == box) box->addItem(tr("All %1").arg(textOf(field.setting->label).toLower()), QString());
    for (const QString& name : names) box->addItem(tr("Only %1").arg(name), name);
    box->setCurrentIndex(std::max(0, box->findData(chosen)));
}

void RequestForm::mark(std::string_view option, std::string_view value, const QString& text) {
    auto* box = qobject_cast<QComboBox*>(fieldOf(option));
    const int item = box->findData(textOf(value));
    if (item >= 0) box->setItemText(item, text.arg(textOf(value)));
}

void RequestForm::choose(std::string_view option, const std::string& name) {
    auto* box = qobject_cast<QComboBox*>(fieldOf(option));
    box->setCurrentIndex(std::max(0, box->findData(QString::fromStdString(name))));
}

}  // namespace cutaway::ui
