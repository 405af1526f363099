#include "ui/windows/package_window.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "ui/models/words.h"
#include "ui/session/ask_queue.h"
#include "ui/windows/code_view.h"
#include "ui/windows/start_folder.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {

PackageWindow::PackageWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_model(*new PackageModel(this)),
      m_table(makeList(m_model, PackageModel::SortRole, tr("The package"))),
      m_state(new QLabel),
      m_areas(new QSplitter(Qt::Vertical)),
      m_models(new QComboBox),
      m_open(new QPushButton(tr("Open Package…"))),
      m_folder(new QPushButton(tr("Open Folder…"))),
      m_compare(new QPushButton(tr("Compare With the Run"))),
      m_theirs(new CodeView(Language::Cpp, tr("The package's source"), tr("Source of the chosen file or kernel"))),
      m_ours(new CodeView(Language::Cpp, tr("Our source"), tr("The kernel of ours that computes the same"))) {
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_models->setAccessibleName(tr("Model of the package"));
    m_compare->setToolTip(tr("Say of each call of the package which call of the run on show computes the same"));
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 4, 4, 4);
    auto* row = new QHBoxLayout;
    for (QWidget* each : std::initializer_list<QWidget*>{m_open, m_folder, m_models, m_compare}) row->addWidget(each);
    row->addStretch(1);
    column->addLayout(row);
    column->addWidget(m_state);
    auto* sources = new QSplitter(Qt::Horizontal);
    for (QWidget* each : std::initializer_list<QWidget*>{m_theirs, m_ours}) sources->addWidget(each);
    for (QWidget* each : std::initializer_list<QWidget*>{m_table, sources}) m_areas->addWidget(each);
    for (QSplitter* each : {sources, m_areas}) each->setChildrenCollapsible(false);
    column->addWidget(m_areas, 1);
    setWidget(page);
    setFocusProxy(m_table);

    connect(m_open, &QPushButton::clicked, this, &PackageWindow::askFile);
    connect(m_folder, &QPushButton::clicked, this, &PackageWindow::askFolder);
    connect(m_compare, &QPushButton::clicked, this, &PackageWindow::compare);
    connect(m_models, &QComboBox::activated, this, &PackageWindow::showModel);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &PackageWindow::showRow);
    connect(&m_selection, &Selection::placeChanged, this, &PackageWindow::follow);
    connect(&m_controller, &SessionController::modelOpened, this, [this] {
        m_comparison.reset();
        m_model.setComparison(nullptr);
        follow();
    });
    m_said =
        tr("A package of AOTInductor - the .pt2 of torch._inductor.aoti_compile_and_package, or the folder of its "
           "files - is shown here with its sources. It is never loaded or run.");
    follow();
}

void PackageWindow::askFile() {
    const QString path = beginAt(QFileDialog::getOpenFileName(this, tr("Open a package of AOTInductor"), startFolder(),
                                                              tr("Packages (*.pt2);;All files (*)")));
    if (!path.isEmpty()) open(path);
}
void PackageWindow::askFolder() {
    const QString path =
        beginAt(QFileDialog::getExistingDirectory(this, tr("Open the folder of a package"), startFolder()));
    if (!path.isEmpty()) open(path);
}

void PackageWindow::open(const QString& path) {
    askQueue<CompiledPackage>(
        this, m_reads, "package", m_reading,
        [text = QFileInfo(path).absoluteFilePath().toStdString()](const Progress&) { return openPackage(text); },
        [this](Result<CompiledPackage> package) {
            if (package) return shown(std::move(*package));
            m_said = QString::fromStdString(package.error().text());
            follow();
        });
}

void PackageWindow::shown(CompiledPackage package) {
    m_package = std::move(package);
    m_models->clear();
    for (const PackagedModel& model : m_package->models) m_models->addItem(QString::fromStdString(model.name));
    showModel();
}

void PackageWindow::showModel() {
    m_comparison.reset();
    m_theirs->setCode({});
    m_ours->setCode({});
    m_model.setPackage(*m_package, static_cast<size_t>(std::max(0, m_models->currentIndex())));
    fitColumns(*m_table);
    const QString name = QFileInfo(QString::fromStdString(m_package->path)).fileName();
    QStringList said{name, counted(static_cast<qsizetype>(m_package->files.size()), tr("file"), tr("files")),
                     counted(static_cast<qsizetype>(m_package->models.size()), tr("model"), tr("models"))};
    for (const std::string& remark : m_package->remarks) said << QString::fromStdString(remark);
    m_said = said.join(QStringLiteral(" · "));
    follow();
}

void PackageWindow::compare() {
    const auto index = static_cast<size_t>(std::max(0, m_models->currentIndex()));
    m_controller.comparePackage(
        m_selection.place().run, std::make_shared<const PackagedModel>(m_package->models[index]),
        [this, index](const std::shared_ptr<const PackageComparison>& comparison) {
            if (!comparison) return;
            m_comparison = comparison;
            m_model.setComparison(comparison.get());
            fitColumns(*m_table);
            m_said = tr("%1 of %2 have one of ours that computes the same")
                         .arg(comparison->same)
                         .arg(counted(static_cast<qsizetype>(m_package->models[index].calls.size()), tr("call"),
                                      tr("calls")));
            follow();
        });
}

void PackageWindow::showRow() {
    const QModelIndex chosen = m_table->selectionModel()->selectedRows().value(0);
    ++m_looking;  // what is still being read is no longer wanted
    m_theirs->setCode({});
    m_ours->setCode({});
    if (!chosen.isValid() || !m_package) return;
    const PackageModel::Row row =
        m_model.at(static_cast<const QSortFilterProxyModel*>(m_table->model())->mapToSource(chosen).row());
    const auto index = static_cast<size_t>(std::max(0, m_models->currentIndex()));
    if (row.call >= 0)
        m_theirs->setCode(QString::fromStdString(m_package->models[index].calls[static_cast<size_t>(row.call)].source));
    if (row.ours >= 0 && m_comparison) {
        const RunCall& call = m_comparison->ours[static_cast<size_t>(row.ours)];
        m_ours->setCode(QString::fromStdString(call.source) + QStringLiteral("\n// ") + row.why);
        if (!call.nodes.empty()) m_selection.setNode(call.nodes.back());
    }
    if (row.file.empty() && row.constant.empty()) return;
    askQueue<std::string>(
        this, m_reads, "text", m_looking,
        [path = m_package->path, file = row.file, constant = row.constant,
         model = index < m_package->models.size() ? m_package->models[index].name : std::string()](const Progress&) {
            return constant.empty() ? packagedText(path, file) : packagedConstant(path, model, constant);
        },
        [this](Result<std::string> text) {
            m_theirs->setCode(QString::fromStdString(text ? *text : "// " + text.error().text()));
        });
}

void PackageWindow::follow() {
    m_state->setText(m_said);
    m_models->setVisible(m_models->count() > 1);
    m_compare->setEnabled(m_package && !m_package->models.empty() && m_selection.hasPlace() &&
                          m_controller.runOf(m_selection.place().run) != nullptr);
}

/// List and sources stand where each has most room.
void PackageWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    m_areas->setOrientation(width() > 2 * height() ? Qt::Horizontal : Qt::Vertical);
}

}  // namespace cutaway::ui
