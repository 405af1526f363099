#include "ui/models/package_model.h"

#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

QString plain(const std::string& text) { return QString::fromStdString(text); }
QString listOf(const std::vector<std::string>& names) {
    QStringList all;
    for (const std::string& name : names) all << plain(name);
    return all.join(QStringLiteral(", "));
}
/// Results, and the operators that make them.
QString detailOf(const PackagedCall& call) {
    QStringList written;
    for (const PackagedValue& value : call.writes) written << plain(value.type);
    return listOf(call.ops) +
           (written.isEmpty() ? QString() : QStringLiteral(" → ") + written.join(QStringLiteral(", ")));
}

}  // namespace

void PackageModel::setPackage(const CompiledPackage& package, size_t model) {
    beginResetModel();
    m_rows.clear();
    if (model < package.models.size()) {
        const PackagedModel& shown = package.models[model];
        for (size_t i = 0; i < shown.calls.size(); ++i) {
            const PackagedCall& call = shown.calls[i];
            m_rows.push_back({.what = call.kernel ? tr("kernel") : tr("call"),
                              .name = plain(call.name),
                              .detail = detailOf(call),
                              .call = static_cast<int>(i)});
        }
        const auto add = [this](const QString& what, const std::string& name, const std::string& detail) {
            m_rows.push_back({.what = what, .name = plain(name), .detail = plain(detail)});
        };
        for (const PackagedValue& input : shown.inputs) add(tr("input"), input.name, input.type);
        for (const PackagedValue& output : shown.outputs) add(tr("output"), output.name, output.type);
        if (!shown.inSpec.empty()) add(tr("nesting"), "in_spec", shown.inSpec);
        if (!shown.outSpec.empty()) add(tr("nesting"), "out_spec", shown.outSpec);
        for (const PackagedConstant& one : shown.constants) {
            add(one.kind.empty() ? tr("constant") : plain(one.kind).toLower(),
                one.original.empty() ? one.name : one.original, one.type);
            m_rows.back().constant = one.name;
        }
        for (const auto& [key, value] : shown.metadata) add(tr("metadata"), key, value);
    }
    for (const PackagedFile& file : package.files)
        m_rows.push_back({.what = tr("file"),
                          .name = plain(file.name),
                          .detail = plain(file.kind) + QStringLiteral(", ") + sizeText(file.bytes),
                          .file = file.name});
    endResetModel();
}

void PackageModel::setComparison(const PackageComparison* comparison) {
    beginResetModel();
    std::erase_if(m_rows, [](const Row& row) { return row.call < 0 && row.ours >= 0; });
    for (Row& row : m_rows) {
        row.ours = -1;
        row.oursName = row.match = row.why = QString();
    }
    size_t last = 0;
    while (last < m_rows.size() && m_rows[last].call >= 0) ++last;
    for (const CallPair& pair : comparison ? comparison->pairs : std::vector<CallPair>()) {
        const RunCall* call = pair.ours < 0 ? nullptr : &comparison->ours[static_cast<size_t>(pair.ours)];
        const QString name = call ? plain(call->name) : QString();
        if (pair.theirs < 0 && call) {
            m_rows.insert(m_rows.begin() + static_cast<std::ptrdiff_t>(last++), {.what = tr("ours"),
                                                                                 .detail = listOf(call->ops),
                                                                                 .ours = pair.ours,
                                                                                 .oursName = name,
                                                                                 .match = tr("ours alone"),
                                                                                 .why = plain(pair.why)});
            continue;
        }
        for (Row& row : m_rows)
            if (row.call == pair.theirs && row.call >= 0) {
                row.ours = pair.ours;
                row.oursName = name;
                row.why = plain(pair.why);
                row.match = pair.match == CallMatch::Same   ? tr("same")
                            : pair.match == CallMatch::Part ? tr("in part")
                                                            : tr("theirs alone");
            }
    }
    endResetModel();
}

int PackageModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int PackageModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant PackageModel::data(const QModelIndex& where, int role) const {
    const Row& row = at(where.row());
    if (role == Qt::ToolTipRole && !row.why.isEmpty()) return row.why;
    if (role != Qt::DisplayRole && role != SortRole && role != Qt::ToolTipRole) return {};
    switch (where.column()) {
        case What: return row.what;
        case Name: return row.name;
        case Detail: return row.detail;
        case Ours: return row.oursName;
        case Match: return row.match;
        default: return {};
    }
}

QVariant PackageModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    const QString titles[] = {tr("Name"), tr("What"), tr("Ours"), tr("Match"), tr("Detail")};
    return section < ColumnCount ? titles[section] : QVariant();
}

}  // namespace cutaway::ui
