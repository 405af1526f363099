#pragma once
// What a minifier search may be told beside what counts as failing: limits, repeats, inputs, and what it leaves
// untried.
#include <QWidget>

#include "cutaway/minify.h"

class QComboBox;
class QFormLayout;
class QLineEdit;
class QListWidget;
class QSpinBox;
class QToolButton;

namespace cutaway::ui {

class MinifySettings : public QWidget {
    Q_OBJECT

  public:
    explicit MinifySettings(QWidget* parent = nullptr);
    /// What does not concern a check is greyed.
    void follow(MinifyCheck check);
    /// Empty, or what is wrong with a field.
    QString problem() const;
    /// Fields that are left empty keep the options' defaults. `shown`: the place in a run that is looked at.
    void fill(MinifyOptions& options, const std::optional<Place>& shown) const;

  private:
    void addFields(QFormLayout& rows);
    void addStrategies(QFormLayout& rows);
    void chooseInputs();

    QToolButton* m_more;
    QWidget* m_fields;
    QComboBox* m_graph;
    QLineEdit *m_tolerance, *m_match, *m_inputs;
    QSpinBox *m_seconds, *m_megabytes, *m_repeats, *m_jobs;
    QListWidget* m_strategies;
};

}  // namespace cutaway::ui
