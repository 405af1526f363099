#pragma once
// How windows put work on a job queue of their own, which does not wait for the session's.
#include <QMetaObject>
#include <QObject>
#include <functional>
#include <memory>

#include "cutaway/jobs.h"

namespace cutaway::ui {

/// Does `work` on the queue, then calls `then` on the thread of `heard`, unless a later call with the same `generation`
/// was made meanwhile. `generation` must live as long as `heard`.
template <class T>
std::shared_ptr<CancelToken> askQueue(QObject* heard, JobQueue& queue, const std::string& tag, int& generation,
                                      std::function<Result<T>(const Progress&)> work,
                                      std::function<void(Result<T>)> then) {
    const int own = ++generation;
    auto ended = [heard, own, &generation, then = std::move(then)](const std::shared_ptr<Result<T>>& result) {
        QMetaObject::invokeMethod(
            heard,
            [own, &generation, then, result] {
                if (own == generation) then(std::move(*result));
            },
            Qt::QueuedConnection);
    };
    return queue.post(
        tag,
        [ended, work = std::move(work)](const Progress& progress) {
            ended(std::make_shared<Result<T>>(work(progress)));
        },
        {}, [ended](const Error& error) { ended(std::make_shared<Result<T>>(error)); });
}

}  // namespace cutaway::ui
