#pragma once
// Tells of passes and of their rewrites while they are made, for whoever wants to know in which one a process ended.
#include <functional>

#include "cutaway/trace.h"

namespace cutaway {

/// Until the end of the scope `told` is called for each rewrite that a pass begins on this thread, and `begun` for each
/// pass of a run.
class RewriteWatch {
  public:
    using RewriteCallback = std::function<void(std::string_view pass, const RewriteInfo&)>;
    using PassCallback = std::function<void(std::string_view stage, std::string_view pass)>;
    explicit RewriteWatch(RewriteCallback onRewrite, PassCallback onPass = {});
    ~RewriteWatch();
    RewriteWatch(const RewriteWatch&) = delete;
    RewriteWatch& operator=(const RewriteWatch&) = delete;

    /// Of this thread; null: nobody wants to know.
    static const RewriteWatch* current();
    void rewrite(std::string_view pass, const RewriteInfo& info) const { m_onRewrite(pass, info); }
    void begins(std::string_view stage, std::string_view pass) const {
        if (m_onPass) m_onPass(stage, pass);
    }

  private:
    RewriteCallback m_onRewrite;
    PassCallback m_onPass;
    const RewriteWatch* m_before;
};

}  // namespace cutaway
