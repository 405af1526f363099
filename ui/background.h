#pragma once
// Work that must not block the window.
#include <QFutureWatcher>
#include <QtConcurrentRun>

namespace cutaway::ui {

/// Hands the result to `then` on the thread of `owner`, which is the caller's, unless `owner` is gone by then. Always
/// after the caller has returned: QFuture::then would call at once if the result is there already.
template <class Made, class Then>
void whenMade(QObject* owner, const QFuture<Made>& future, Then then) {
    auto* watcher = new QFutureWatcher<Made>(owner);
    QObject::connect(watcher, &QFutureWatcherBase::finished, owner, [watcher, then = std::move(then)]() mutable {
        const Made made = watcher->result();
        watcher->deleteLater();
        then(made);
    });
    watcher->setFuture(future);
}

/// Runs `work` on the global thread pool and hands its result to `then`, as whenMade does.
template <class Work, class Then>
void inBackground(QObject* owner, Work work, Then then) {
    whenMade(owner, QtConcurrent::run(std::move(work)), std::move(then));
}

}  // namespace cutaway::ui
