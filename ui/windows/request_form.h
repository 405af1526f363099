#pragma once
// Fields for the options of a request, made from the rows of the table of settings that have a label.
#include <QWidget>
#include <string>
#include <vector>

#include "cutaway/settings.h"

class QFormLayout;

namespace cutaway::ui {

class RequestForm : public QWidget {
    Q_OBJECT

  public:
    /// `takenKeys`: letters that labels beside the form have taken with Alt.
    explicit RequestForm(const CompileRequest& from, QString takenKeys = {}, QWidget* parent = nullptr);
    Mode mode() const;
    /// The options that the fields hold, as the command line would have them; those that mean nothing in the mode are
    /// left out.
    std::vector<std::string> words() const;
    /// The names that the field of an option of names offers beside "all"; what is chosen stays if it is among them.
    void offer(std::string_view option, const QStringList& names);
    /// What the field of a choice says in place of `value`; %1 in the text is the value.
    void mark(std::string_view option, std::string_view value, const QString& text);
    void choose(std::string_view option, const std::string& name);

  signals:
    /// The value of `option` has changed.
    void changed(const QString& option);

  private:
    struct Field {
        const Setting* setting;
        QWidget* widget;
    };
    Field makeField(const Setting& setting, const CompileRequest& from);
    QWidget* fieldOf(std::string_view option) const;
    /// Whether it means something in the chosen mode and on the chosen device.
    bool means(const Setting& setting) const;
    void showMeant();

    QFormLayout* m_form;
    std::vector<Field> m_fields;
};

}  // namespace cutaway::ui
