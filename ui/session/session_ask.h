#pragma once
// How the controller asks the engine's thread; for its own files only.
#include <QMetaObject>

#include "ui/session/session_controller.h"

namespace cutaway::ui {

template <class T>
void SessionController::ask(const QString& tag, const QString& doing, std::function<Result<T>(Source&, const Progress&)> work,
                            std::function<void(T)> then, std::function<void()> orElse) {
    const bool wasBusy = isBusy();
    const int generation = ++m_generation[tag], epoch = m_epoch;
    m_pending.insert(tag, doing);
    auto job = [this, tag, doing, generation, epoch, work = std::move(work), then = std::move(then), orElse = std::move(orElse)](const Progress& progress) {
        auto result = std::make_shared<Result<T>>(work(*m_source, progress));
        QMetaObject::invokeMethod(this, [=, this] {
            if (epoch != m_epoch || generation != m_generation.value(tag)) return;
            if (*result) {
                then(std::move(**result));
            } else {
                fail(result->error(), doing);
                if (orElse) orElse();
            }
            settled(tag);
        }, Qt::QueuedConnection);
    };
    auto report = [this, tag, epoch, generation, doing](double fraction, const std::string& what) {
        const QString text = what.empty() ? doing : QString::fromStdString(what);
        QMetaObject::invokeMethod(this, [=, this] {
            if (epoch == m_epoch && generation == m_generation.value(tag) && m_pending.value(tag) == doing) emit progress(text, fraction);
        }, Qt::QueuedConnection);
    };
    m_queue->post(tag.toStdString(), std::move(job), std::move(report));
    emit progress(doing, -1);
    if (!wasBusy) emit busyChanged(true);
}

}  // namespace cutaway::ui
