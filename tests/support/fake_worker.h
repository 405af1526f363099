#pragma once
// A script in place of cutaway-worker.
#include <QByteArray>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/runtime/worker_pool.h"
#include "engine/support/temp_dir.h"

namespace cutaway::testing {

/// While it lives, workers are this shell script; one that waited is ended.
class FakeWorker {
  public:
    explicit FakeWorker(const std::string& script) : m_folder(TempDir::create().value()), m_before(qgetenv(kVariable)) {
        const std::string path = m_folder.file("worker");
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        qputenv(kVariable, path.c_str());
        endIdleWorkers();
    }
    ~FakeWorker() {
        if (m_before.isNull()) qunsetenv(kVariable);
        else qputenv(kVariable, m_before);
    }
    FakeWorker(const FakeWorker&) = delete;
    FakeWorker& operator=(const FakeWorker&) = delete;

  private:
    static constexpr const char* kVariable = "CUTAWAY_WORKER";
    TempDir m_folder;
    QByteArray m_before;
};

}  // namespace cutaway::testing
