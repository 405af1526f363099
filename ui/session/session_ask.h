#pragma once
// How the controller asks the engine's threads; for its own files only.
#include <QMetaObject>
#include <exception>

#include "ui/session/session_controller.h"

namespace cutaway::ui {

/// The error of a job that throws. Without it nobody would learn that the job has ended.
inline Error thrown(const char* what) {
    return {ErrorCode::Internal,
            what,
            {},
            {"This is a bug in Cutaway. What was open stays open; please report it with the model and these words."}};
}

template <class T>
void SessionController::ask(Lane lane, const QString& tag, const QString& doing,
                            std::function<Result<T>(Source&, const Progress&)> work, std::function<void(T)> then,
                            std::function<void()> orElse) {
    const bool wasBusy = isBusy();
    const int generation = ++m_generation[tag], epoch = m_epoch;
    auto ended = [this, tag, doing, generation, epoch, then = std::move(then),
                  orElse = std::move(orElse)](std::shared_ptr<Result<T>> result) {
        QMetaObject::invokeMethod(
            this,
            [=, this] {
                if (epoch != m_epoch || generation != m_generation.value(tag)) return;
                if (*result) {
                    then(std::move(**result));
                } else {
                    fail(result->error(), doing);
                    if (orElse) orElse();
                }
                // `then` may have asked for the same again, or opened another model.
                if (epoch == m_epoch && generation == m_generation.value(tag)) settled(tag);
            },
            Qt::QueuedConnection);
    };
    auto job = [this, ended, work = std::move(work)](const Progress& progress) {
        std::shared_ptr<Result<T>> result;
        try {
            result = std::make_shared<Result<T>>(work(*m_source, progress));
        } catch (const std::exception& error) {
            result = std::make_shared<Result<T>>(thrown(error.what()));
        } catch (...) {
            result = std::make_shared<Result<T>>(thrown("unknown exception"));
        }
        ended(std::move(result));
    };
    // Errors around the work, such as a lack of memory, end it too.
    auto failed = [ended](const Error& error) { ended(std::make_shared<Result<T>>(error)); };
    auto report = [this, tag, epoch, generation](double fraction, const std::string& what) {
        QMetaObject::invokeMethod(
            this,
            [this, tag, epoch, generation, fraction, text = QString::fromStdString(what)] {
                if (epoch != m_epoch || generation != m_generation.value(tag) || !m_pending.contains(tag)) return;
                m_pending[tag].shown.progress = m_pending[tag].reached = text;
                m_pending[tag].shown.fraction = fraction;
                emit activitiesChanged();
            },
            Qt::QueuedConnection);
    };
    Pending pending;
    pending.lane = lane;
    pending.shown.tag = lane == Lane::Queries ? QString(kQuery) : tag;
    pending.shown.doing = doing;
    pending.shown.since.start();
    pending.cancel = m_queues[static_cast<size_t>(lane)]->post(tag.toStdString(), std::move(job), std::move(report),
                                                               std::move(failed));
    m_pending.insert(tag, pending);
    emit activitiesChanged();
    if (!wasBusy) emit busyChanged(true);
}

}  // namespace cutaway::ui
