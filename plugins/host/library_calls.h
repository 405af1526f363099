#pragma once
// The calls of a plugin's library, made of the texts of a request (serve.h).
#include <deque>
#include <string>
#include <vector>

#include "plugins/cutaway_plugin.h"

/// A call with all that it points to. Tensors lie in memory that Cutaway shares: what it fills cannot be written to
/// here, results can.
class LibraryCall {
  public:
    /// `problem` says why there is none.
    explicit LibraryCall(const std::vector<std::string>& request);
    LibraryCall(const LibraryCall&) = delete;
    LibraryCall& operator=(const LibraryCall&) = delete;

    const ct_call* call() const { return &m_call; }
    std::string problem;

  private:
    const ct_tensor* tensorOf(const std::string& text, const std::string& memory);
    const ct_argument* argumentOf(const std::vector<std::string>& request, size_t& at);

    std::deque<ct_tensor> m_tensors;
    std::deque<ct_argument> m_args;
    std::deque<std::string> m_texts;
    std::deque<std::vector<int64_t>> m_numbers;
    std::deque<std::vector<const ct_argument*>> m_lists;
    std::vector<const ct_tensor*> m_operands, m_results;
    ct_call m_call{};
};
