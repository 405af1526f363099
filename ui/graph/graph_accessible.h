#pragma once
// The canvas for screen readers: one child per node, in order, with its spoken text. Without it painted nodes are
// invisible to assistive technology.
class QWidget;

namespace cutaway::ui {

/// Registers the factory; may be called more than once.
void installGraphAccessibility();
/// Tells the screen reader that `node` (index in the scene, -1 for none) is now current.
void announceCurrent(QWidget* canvas, int node);
/// To be called before the scene is replaced: its children become invalid.
void dropAccessibleNodes(QWidget* canvas);

}  // namespace cutaway::ui
