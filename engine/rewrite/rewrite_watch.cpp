#include "engine/rewrite/rewrite_watch.h"

namespace cutaway {
namespace {
thread_local const RewriteWatch* t_watch = nullptr;
}

RewriteWatch::RewriteWatch(RewriteCallback onRewrite, PassCallback onPass)
    : m_onRewrite(std::move(onRewrite)), m_onPass(std::move(onPass)), m_before(t_watch) {
    t_watch = this;
}
RewriteWatch::~RewriteWatch() { t_watch = m_before; }
const RewriteWatch* RewriteWatch::current() { return t_watch; }

}  // namespace cutaway
