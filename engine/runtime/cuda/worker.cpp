// The worker's end of cuda_device.h: questions come on stdin, answers go to stdout, each a line with its length before
// its text.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <sstream>
#include <string_view>

#include "engine/runtime/cuda/cuda_device.h"
#include "engine/runtime/cuda/timer.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

/// The GPU and its libraries are opened by the first question and kept, which takes longer than most answers.
class Answers {
  public:
    Result<std::string> facts() {
        CT_TRY(const cuda::Device* device, this->device());
        CT_TRY(const CudaFacts facts, device->facts());
        std::string out = facts.name + "\n" + facts.versions + "\n";
        for (const auto& [name, value] : facts.numbers) out += name + " " + std::to_string(value) + "\n";
        return out;
    }
    Result<std::string> time(const std::string& graph, bool tf32) {
        CT_TRY(const auto module, parseText(graph));
        CT_TRY(const cuda::Device* device, this->device());
        if (!m_timer) {
            CT_TRY(cuda::Timer timer, cuda::Timer::open(*device));
            m_timer.emplace(std::move(timer));
        }
        CT_TRY(const double milliseconds, m_timer->time(*module, tf32));
        char out[64];
        std::snprintf(out, sizeof out, "%.9g\n", milliseconds);
        return std::string(out);
    }

  private:
    Result<const cuda::Device*> device() {
        if (!m_device) {
            CT_TRY(cuda::Device opened, cuda::Device::open());
            CT_TRY_VOID(opened.openProducts());
            m_device.emplace(std::move(opened));
        }
        return &*m_device;
    }
    std::optional<cuda::Device> m_device;
    std::optional<cuda::Timer> m_timer;
};

/// Text from stdin; none once the other end is closed, or silent for so long that the GPU's memory should be released.
class Questions {
  public:
    std::optional<std::string> line() {
        while (m_text.find('\n') == std::string::npos)
            if (!more()) return std::nullopt;
        return bytes(m_text.find('\n') + 1);
    }
    std::optional<std::string> bytes(size_t count) {
        while (m_text.size() < count)
            if (!more()) return std::nullopt;
        std::string out = m_text.substr(0, count);
        m_text.erase(0, count);
        return out;
    }

  private:
    bool more() {
        constexpr int kPatience = 15'000;  // milliseconds
        pollfd input{STDIN_FILENO, POLLIN, 0};
        if (::poll(&input, 1, kPatience) <= 0) return false;
        char block[65536];
        const ssize_t count = ::read(STDIN_FILENO, block, sizeof block);
        if (count <= 0) return false;
        m_text.append(block, static_cast<size_t>(count));
        return true;
    }
    std::string m_text;
};

Result<std::string> answer(Answers& answers, Questions& questions, const std::string& question) {
    std::istringstream words(question);
    std::string what;
    int tf32 = 0;
    size_t length = 0;
    words >> what;
    if (what == "facts") return answers.facts();
    if (what != "time" || !(words >> tf32 >> length))
        return invalidInput("cutaway-worker knows the questions facts, and time 0|1 LENGTH with a graph");
    const auto graph = questions.bytes(length);
    if (!graph) return invalidInput("the graph ends early");
    return answers.time(*graph, tf32 != 0);
}

}  // namespace

int cudaWorkerMain() {
    Answers answers;
    Questions questions;
    while (const auto question = questions.line()) {
        std::string text, word = "failed";
        try {
            const auto reply = answer(answers, questions, *question);
            if (reply) word = "ok";
            text = reply ? *reply : reply.error().text();
        } catch (const std::exception& error) {
            text = error.what();
        }
        std::printf("%s %zu\n%s", word.c_str(), text.size(), text.c_str());
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace cutaway
