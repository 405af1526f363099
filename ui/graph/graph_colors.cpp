#include "ui/graph/graph_colors.h"

namespace cutaway::ui {
namespace {

struct StateShades {
    Change change;
    const char *lightFill, *darkFill, *lightLine, *darkLine, *lightText, *darkText;
};
constexpr StateShades kStates[] = {
    {Change::Unchanged, "#f1f3f5", "#33363b", "#9aa1a9", "#6b7178", "#24292f", "#dfe3e8"},
    {Change::Added, "#dcf5e4", "#173d27", "#1a7f37", "#4fc37d", "#0b4a1e", "#c9f5d8"},
    {Change::Removed, "#ffe3e3", "#4a2023", "#c4232c", "#f07178", "#7a1218", "#ffd6d8"},
    {Change::Edited, "#fff3d1", "#463614", "#9a6700", "#e3b341", "#5c3d00", "#fbe9bd"},
};

struct SideShades {
    Side side;
    const char *lightFill, *darkFill, *lightLine, *darkLine, *lightText, *darkText;
};
constexpr SideShades kSides[] = {
    {Side::Forward, "#dfeafc", "#1c3352", "#2f6fc4", "#6ea8f0", "#123a70", "#d3e5ff"},
    {Side::Backward, "#fde8d7", "#4a2d14", "#b85a12", "#eb9a52", "#6b3205", "#ffe2c8"},
    {Side::Both, "#ebe1fb", "#38265a", "#7a46c4", "#b48cf2", "#43207a", "#e6d8ff"},
};

struct HeatShades {
    Heat heat;
    const char *lightFill, *darkFill, *lightLine, *darkLine, *lightText, *darkText;
};
constexpr HeatShades kHeatShades[] = {
    {Heat::Equal, "#f1f3f5", "#33363b", "#9aa1a9", "#6b7178", "#24292f", "#dfe3e8"},
    {Heat::Slight, "#dfeafc", "#1c3352", "#2f6fc4", "#6ea8f0", "#123a70", "#d3e5ff"},
    {Heat::Some, "#fff3d1", "#463614", "#9a6700", "#e3b341", "#5c3d00", "#fbe9bd"},
    {Heat::Much, "#fddcc0", "#5a3312", "#b85a12", "#eb9a52", "#6b3205", "#ffe2c8"},
    {Heat::Wrong, "#ffc9c9", "#5e1a1f", "#c4232c", "#f07178", "#6a0d13", "#ffd6d8"},
};

struct ClassShades {
    OpClass opClass;
    const char *light, *dark;
};
constexpr ClassShades kClasses[] = {
    {OpClass::Other, "#e2eef0", "#2b3d40"},     {OpClass::Product, "#cfdcf6", "#263a63"},
    {OpClass::Pointwise, "#f1f3f5", "#33363b"}, {OpClass::Reduction, "#e8def6", "#3d3157"},
    {OpClass::View, "#fbfbfc", "#26282c"},
};

struct Shades {
    QColor GraphColors::*color;
    const char *light, *dark;
};
const Shades kShades[] = {
    {&GraphColors::edge, "#8a929b", "#7b828a"},        {&GraphColors::cluster, "#8aa0c0", "#5d6f8a"},
    {&GraphColors::clusterText, "#4a6285", "#9fb2cf"}, {&GraphColors::detail, "#57606a", "#b3bac2"},
    {&GraphColors::chip, "#dde6f0", "#44505f"},        {&GraphColors::chipText, "#2b3a4b", "#dfe7f0"},
    {&GraphColors::current, "#0b6bcb", "#4aa3ff"},     {&GraphColors::hover, "#3d8bd9", "#9ccfff"},
    {&GraphColors::input, "#e6eef8", "#2b3644"},       {&GraphColors::saved, "#c01c6a", "#ff7ab8"},
};

}  // namespace

GraphColors GraphColors::of(const QPalette& palette) {
    GraphColors colors;
    colors.canvas = palette.color(QPalette::Base);
    const bool dark = colors.canvas.lightness() < 128;
    for (const StateShades& state : kStates)
        colors.states[static_cast<int>(state.change)] = {QColor(dark ? state.darkFill : state.lightFill),
                                                         QColor(dark ? state.darkLine : state.lightLine),
                                                         QColor(dark ? state.darkText : state.lightText)};
    for (const SideShades& side : kSides)
        colors.sides[static_cast<int>(side.side)] = {QColor(dark ? side.darkFill : side.lightFill),
                                                     QColor(dark ? side.darkLine : side.lightLine),
                                                     QColor(dark ? side.darkText : side.lightText)};
    for (const HeatShades& heat : kHeatShades)
        colors.heats[static_cast<int>(heat.heat)] = {QColor(dark ? heat.darkFill : heat.lightFill),
                                                     QColor(dark ? heat.darkLine : heat.lightLine),
                                                     QColor(dark ? heat.darkText : heat.lightText)};
    for (const ClassShades& one : kClasses)
        colors.classes[static_cast<int>(one.opClass)] = QColor(dark ? one.dark : one.light);
    for (const Shades& shades : kShades) colors.*shades.color = QColor(dark ? shades.dark : shades.light);
    return colors;
}

}  // namespace cutaway::ui
