#include "ui/windows/welcome_page.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QFontDatabase>
#include <QGridLayout>
#include <QLabel>
#include <QLocale>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/words.h"
#include "ui/session/known_files.h"
#include "ui/windows/icons.h"
#include "ui/windows/link_button.h"

namespace cutaway::ui {
namespace {

constexpr int kTwoColumns = 104;  // letters that they need
constexpr int kWidest = 180;      // letters; wider lines are hard to follow

struct Format {
    const char *what, *how;
};
constexpr Format kFormats[] = {
    {QT_TRANSLATE_NOOP("cutaway::ui", "Exported program (.pt2)"),
     "torch.export.save(torch.export.export(model, args), \"model.pt2\")"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "FX text (.py, .txt)"), "print(graph_module.print_readable())"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Log of a compile"),
     "TORCH_LOGS=aot_graphs,post_grad_graphs python train.py 2> compile.log"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Structured trace (folder)"), "TORCH_TRACE=trace python train.py"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Debug folder"), "TORCH_COMPILE_DEBUG=1 python train.py"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Repro script"), "fx_graph_runnable.py, repro.py, minifier_launcher.py"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Module folder"), "graph_module.to_folder(\"folder\")"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Compiled package (.pt2), to look into"),
     "torch._inductor.aoti_compile_and_package(exported)"},
};

struct KeyTip {
    const char *what, *key;
};
constexpr KeyTip kWelcomeKeys[] = {
    {QT_TRANSLATE_NOOP("cutaway::ui", "Compile"), "Ctrl+B"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Next changed step"), "F10"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Single rewrites"), "F11"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Why a rule applies, or not"), "Ctrl+E"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Execute"), "F5"},
    {QT_TRANSLATE_NOOP("cutaway::ui", "Go to anything"), "Ctrl+K"},
};

QString words(const char* text) { return QCoreApplication::translate("cutaway::ui", text); }

QLabel* heading(const QString& text) {
    auto* label = new QLabel(text);
    QFont font = label->font();
    font.setPointSizeF(font.pointSizeF() * 1.25);
    font.setWeight(QFont::DemiBold);
    label->setFont(font);
    label->setContentsMargins(6, 0, 0, 2);
    return label;
}

/// A heading with room for lines below it.
std::pair<QWidget*, QVBoxLayout*> section(const QString& title) {
    auto* box = new QWidget;
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    column->addWidget(heading(title));
    return {box, column};
}

void clear(QBoxLayout& layout) {
    while (QLayoutItem* item = layout.takeAt(0)) {
        delete item->widget();
        delete item;
    }
}

QString whenText(const QDateTime& time) {
    const QDate today = QDate::currentDate();
    const QLocale locale;
    if (!time.isValid()) return {};
    if (time.date() == today)
        return WelcomePage::tr("today %1").arg(locale.toString(time.time(), QLocale::ShortFormat));
    if (time.date() == today.addDays(-1))
        return WelcomePage::tr("yesterday %1").arg(locale.toString(time.time(), QLocale::ShortFormat));
    return locale.toString(time.date(), QLocale::ShortFormat);
}

}  // namespace

WelcomePage::WelcomePage(QWidget* parent)
    : QScrollArea(parent),
      m_columns(new QBoxLayout(QBoxLayout::LeftToRight)),
      m_samples(new QVBoxLayout),
      m_recent(new QVBoxLayout) {
    setObjectName(QStringLiteral("welcome"));
    setAccessibleName(tr("Welcome"));
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    viewport()->setBackgroundRole(QPalette::Base);
    for (QBoxLayout* list : {m_samples, m_recent}) list->setSpacing(2);

    auto* left = new QVBoxLayout;
    left->setSpacing(18);
    left->addWidget(makeStart());
    const auto [samples, sampleColumn] = section(tr("Samples"));
    sampleColumn->addLayout(m_samples);
    left->addWidget(samples);
    left->addStretch();
    auto* right = new QVBoxLayout;
    const auto [recent, recentColumn] = section(tr("Recent"));
    recentColumn->addLayout(m_recent);
    right->addWidget(recent);
    right->addStretch();
    m_columns->setSpacing(28);
    m_columns->addLayout(left, 1);
    m_columns->addLayout(right, 1);

    auto* page = new QWidget;
    page->setMaximumWidth(kWidest * fontMetrics().averageCharWidth());
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(28, 24, 28, 24);
    column->setSpacing(22);
    column->addWidget(makeTitle());
    column->addLayout(m_columns);
    column->addWidget(makeFormats());
    column->addWidget(makeKeys());
    column->addStretch();
    auto* middle = new QWidget;
    middle->setBackgroundRole(QPalette::Base);
    middle->setAutoFillBackground(true);
    auto* row = new QHBoxLayout(middle);
    row->setContentsMargins(0, 0, 0, 0);
    row->addStretch(1);
    row->addWidget(page, 100);
    row->addStretch(1);
    setWidget(middle);
    refresh();
}

QWidget* WelcomePage::makeTitle() {
    auto* box = new QWidget;
    auto* row = new QHBoxLayout(box);
    row->setContentsMargins(6, 0, 0, 0);
    row->setSpacing(14);
    auto* picture = new QLabel;
    picture->setPixmap(programIcon().pixmap(QSize(52, 52), devicePixelRatioF()));
    auto* name = heading(tr("Cutaway"));
    QFont large = name->font();
    large.setPointSizeF(large.pointSizeF() * 1.6);
    name->setFont(large);
    name->setContentsMargins({});
    auto* about =
        new QLabel(tr("Opens a graph compiler while it works: every pass, every rewrite, every kernel, step by step."));
    about->setWordWrap(true);
    auto* lines = new QVBoxLayout;
    lines->setSpacing(0);
    lines->addWidget(name);
    lines->addWidget(about);
    row->addWidget(picture);
    row->addLayout(lines, 1);
    return box;
}

QWidget* WelcomePage::makeStart() {
    const auto [box, column] = section(tr("Start"));
    auto* open = new LinkButton(iconNamed(QStringLiteral("open")), tr("Open File…"),
                                tr("A model, graph, log or script (Ctrl+O), or drop it here"));
    auto* folder = new LinkButton(iconNamed(QStringLiteral("open-folder")), tr("Open Folder…"),
                                  tr("A debug folder or trace (Ctrl+Shift+O)"));
    connect(open, &QPushButton::clicked, this, &WelcomePage::openWanted);
    connect(folder, &QPushButton::clicked, this, &WelcomePage::folderWanted);
    column->addWidget(open);
    column->addWidget(folder);
    return box;
}

QWidget* WelcomePage::makeFormats() {
    const auto [box, column] = section(tr("What can be opened"));
    auto* grid = new QGridLayout;
    grid->setContentsMargins(6, 2, 0, 0);
    grid->setHorizontalSpacing(20);
    grid->setVerticalSpacing(5);
    grid->setColumnStretch(1, 1);
    for (const Format& format : kFormats) {
        auto* what = new QLabel(words(format.what));
        auto* how = new QLabel(QString::fromLatin1(format.how));
        how->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
        how->setWordWrap(true);
        how->setTextInteractionFlags(Qt::TextSelectableByMouse);
        how->setTextFormat(Qt::PlainText);
        m_formats.emplaceBack(what, how);
    }
    m_formatGrid = grid;
    arrangeFormats(false);
    column->addLayout(grid);
    return box;
}

/// Beside each other, or in a narrow window one below the other.
void WelcomePage::arrangeFormats(bool narrow) {
    for (int i = 0; i < m_formats.size(); ++i) {
        m_formatGrid->addWidget(m_formats[i].first, narrow ? 2 * i : i, 0, 1, narrow ? 2 : 1, Qt::AlignTop);
        if (narrow) m_formatGrid->addWidget(m_formats[i].second, 2 * i + 1, 0, 1, 2);
        else m_formatGrid->addWidget(m_formats[i].second, i, 1);
    }
}

QWidget* WelcomePage::makeKeys() {
    const auto [box, column] = section(tr("Keys"));
    QStringList tips;
    for (const KeyTip& tip : kWelcomeKeys)
        tips << QStringLiteral("%1&nbsp;<b>%2</b>")
                    .arg(words(tip.what).toHtmlEscaped().replace(' ', QStringLiteral("&nbsp;")),
                         QString::fromLatin1(tip.key));
    auto* line = new QLabel(tips.join(QStringLiteral(" &nbsp; · &nbsp; ")));
    line->setWordWrap(true);
    line->setContentsMargins(6, 2, 0, 0);
    auto* all = new LinkButton(iconNamed(QStringLiteral("keys")), tr("All keys (F1)"), {});
    connect(all, &QPushButton::clicked, this, &WelcomePage::keysWanted);
    column->addWidget(line);
    column->addWidget(all);
    return box;
}

void WelcomePage::refresh() {
    fillSamples();
    fillRecent();
}

void WelcomePage::fillSamples() {
    clear(*m_samples);
    for (const SampleModel& model : sampleModels()) {
        auto* button = new LinkButton(iconNamed(QStringLiteral("sample")), model.title, model.about);
        button->setProperty("path", model.path);
        connect(button, &QPushButton::clicked, this, [this, path = model.path] { emit fileWanted(path); });
        m_samples->addWidget(button);
    }
    m_samples->parentWidget()->setVisible(m_samples->count() > 0);
}

void WelcomePage::fillRecent() {
    clear(*m_recent);
    for (const RecentFile& file : recentFiles()) {
        const QFileInfo info(file.path);
        QStringList more{info.path(), file.problem.isEmpty() ? file.format : file.problem, whenText(file.opened)};
        more.removeAll(QString());
        auto* line = new QWidget;
        auto* row = new QHBoxLayout(line);
        row->setContentsMargins(0, 0, 0, 0);
        auto* button = new LinkButton(iconNamed(!file.problem.isEmpty() ? QStringLiteral("missing")
                                                : info.isDir()          ? QStringLiteral("open-folder")
                                                                        : QStringLiteral("file")),
                                      shortPath(file.path), more.join(QStringLiteral(" · ")), Qt::ElideMiddle);
        button->setProperty("path", file.path);
        button->setEnabled(file.problem.isEmpty());
        auto* remove = new QToolButton;
        remove->setIcon(iconNamed(QStringLiteral("remove")));
        remove->setAutoRaise(true);
        remove->setFocusPolicy(Qt::StrongFocus);
        remove->setToolTip(tr("Remove from this list; the file stays"));
        remove->setAccessibleName(tr("Remove %1 from the list").arg(info.fileName()));
        connect(button, &QPushButton::clicked, this, [this, path = file.path] { emit fileWanted(path); });
        connect(remove, &QToolButton::clicked, this, [this, path = file.path] {
            forgetFile(path);
            // Not before the click is over: the button goes, too.
            QMetaObject::invokeMethod(this, &WelcomePage::refresh, Qt::QueuedConnection);
        });
        row->addWidget(button, 1);
        row->addWidget(remove);
        m_recent->addWidget(line);
    }
    if (m_recent->count() > 0) return;
    auto* none = new QLabel(tr("Files that you open are listed here."));
    none->setContentsMargins(6, 4, 0, 0);
    none->setWordWrap(true);
    m_recent->addWidget(none);
}

void WelcomePage::resizeEvent(QResizeEvent* event) {
    if (m_columns->direction() == QBoxLayout::LeftToRight)
        m_neededWide = widget()->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width();
    const bool narrow = width() < std::max(m_neededWide, kTwoColumns * fontMetrics().averageCharWidth());
    const QBoxLayout::Direction direction = narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight;
    if (direction != m_columns->direction()) {
        m_columns->setDirection(direction);
        arrangeFormats(narrow);
        // Updates layouts from the inside out, at once; otherwise the page keeps its old width.
        for (QWidget* at = m_formatGrid->parentWidget(); at != viewport(); at = at->parentWidget())
            if (at->layout()) at->layout()->activate();
    }
    QScrollArea::resizeEvent(event);
}

}  // namespace cutaway::ui
