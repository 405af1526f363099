#include "app/cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <iostream>
#include <streambuf>

#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

/// If the caller has closed a standard stream, the next file to be opened would get its descriptor and our output.
void keepStreamsApart() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
            const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

/// Collects whole lines and writes them at once; to a terminal each as it comes.
class Output::Buffer : public std::streambuf {
  public:
    Buffer() : m_most(::isatty(STDOUT_FILENO) == 1 ? 0 : size_t{1} << 16) {}

  protected:
    int overflow(int character) override {
        if (character == traits_type::eof()) return 0;
        const char one = static_cast<char>(character);
        xsputn(&one, 1);
        return character;
    }
    std::streamsize xsputn(const char* text, std::streamsize count) override {
        m_text.append(text, static_cast<size_t>(count));
        const size_t lines = m_text.size() > m_most ? m_text.rfind('\n') : std::string::npos;
        if (lines != std::string::npos) write(lines + 1);
        return count;
    }
    int sync() override {
        write(m_text.size());
        return 0;
    }

  private:
    void write(size_t count) {
        const std::string shown = visibleText(std::string_view(m_text).substr(0, count), true);
        m_text.erase(0, count);
        for (size_t at = 0; at < shown.size();) {
            const ssize_t written = ::write(STDOUT_FILENO, shown.data() + at, shown.size() - at);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) throw OutputFailed{errno};
            at += static_cast<size_t>(written);
        }
    }

    size_t m_most;
    std::string m_text;
};

Output::Output() {
    keepStreamsApart();
    std::signal(SIGPIPE, SIG_IGN);  // a failed write says so; see fail
    m_buffer = std::make_unique<Buffer>();
    m_before = std::cout.rdbuf(m_buffer.get());
    std::cout.exceptions(std::ios::badbit);  // lets OutputFailed through
}
Output::~Output() {
    std::cout.exceptions(std::ios::goodbit);
    std::cout.rdbuf(m_before);
}

bool Output::finish() {
    try {
        std::cout.flush();
        return true;
    } catch (const OutputFailed& failure) {
        fail(failure);
        return false;
    }
}

int Output::fail(const OutputFailed& failure) {
    std::cout.exceptions(std::ios::goodbit);  // std::cerr flushes std::cout, which must not throw again
    if (failure.error == EPIPE) {
        std::signal(SIGPIPE, SIG_DFL);
        std::raise(SIGPIPE);
    }
    return cli::fail(Error{
        ErrorCode::ToolFailed, std::string("cannot write the output: ") + std::strerror(failure.error), "stdout", {}});
}

void print(const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    std::string text(static_cast<size_t>(std::max(0, std::vsnprintf(nullptr, 0, format, arguments))), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    va_end(arguments);
    std::cout << text;
}

void remark(std::string_view text) { std::cerr << "cutaway-cli: " << visibleText(text, true) << "\n"; }

int fail(const Error& error) {
    remark(error.text());
    return 1;
}

int writeText(const std::string& path, const std::string& text) {
    if (path == "-") {
        std::cout << text;
        return 0;
    }
    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file)
        return fail(Error{ErrorCode::ToolFailed,
                          std::string("cannot write the file: ") + std::strerror(errno != 0 ? errno : EIO),
                          path,
                          {}});
    return 0;
}

}  // namespace cutaway::cli
