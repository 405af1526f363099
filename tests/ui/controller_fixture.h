#pragma once
// A controller on a source of hand-made structs, without windows.
#include <QtTest>

#include "tests/ui/fake_source.h"
#include "tests/ui/patience.h"
#include "ui/session/session_controller.h"

namespace cutaway::testing {

struct ControllerFixture {
    std::shared_ptr<FakeSource::Control> m_control;
    std::unique_ptr<ui::Selection> m_selection;
    std::unique_ptr<ui::SessionController> m_controller;

    void begin() {
        m_control = std::make_shared<FakeSource::Control>();
        m_selection = std::make_unique<ui::Selection>();
        m_controller = std::make_unique<ui::SessionController>(std::make_unique<FakeSource>(m_control), *m_selection);
    }
    void end() {
        m_control->hold = false;
        m_control->held = nullptr;
        m_controller.reset();
        m_selection.reset();
    }
    void openAndCompile() {
        m_controller->open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->model() && !m_controller->isBusy(), kPatience);
        m_controller->compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->runs().empty() && !m_controller->isBusy(), kPatience);
    }
};

}  // namespace cutaway::testing

Q_DECLARE_METATYPE(std::shared_ptr<const cutaway::ui::Shown>)
Q_DECLARE_METATYPE(std::shared_ptr<const cutaway::ui::NodeFacts>)
