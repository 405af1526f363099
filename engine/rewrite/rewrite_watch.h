#pragma once
// Tells of rewrites while a pass makes them, for whoever wants to know in which one a process ended.
#include <functional>

#include "cutaway/trace.h"

namespace cutaway {

/// Until the end of the scope `told` is called for each rewrite that a pass begins on this thread.
class RewriteWatch {
  public:
    using Told = std::function<void(std::string_view pass, const RewriteInfo&)>;
    explicit RewriteWatch(Told told);
    ~RewriteWatch();
    RewriteWatch(const RewriteWatch&) = delete;
    RewriteWatch& operator=(const RewriteWatch&) = delete;

    /// Of this thread; null: nobody wants to know.
    static const Told* current();

  private:
    Told m_told;
    const Told* m_before;
};

}  // namespace cutaway
