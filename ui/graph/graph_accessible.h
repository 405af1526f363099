#pragma once
// What a screen reader meets in the canvas: one child per node, in order, with its spoken text. Without it painted
// nodes are invisible to assistive technology.
class QWidget;

namespace cutaway::ui {

/// Registers the factory; once is enough, more does no harm.
void installGraphAccessibility();
/// Tells the screen reader that `node` (index in the scene, -1 for none) is now current.
void announceCurrent(QWidget* canvas, int node);
/// To be called when the scene goes: its children are no more.
void dropAccessibleNodes(QWidget* canvas);

}  // namespace cutaway::ui
