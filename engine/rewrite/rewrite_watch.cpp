#include "engine/rewrite/rewrite_watch.h"

namespace cutaway {
namespace {
thread_local const RewriteWatch* t_watch = nullptr;
}

RewriteWatch::RewriteWatch(Told told, Begun begun)
    : m_told(std::move(told)), m_begun(std::move(begun)), m_before(t_watch) {
    t_watch = this;
}
RewriteWatch::~RewriteWatch() { t_watch = m_before; }
const RewriteWatch* RewriteWatch::current() { return t_watch; }

}  // namespace cutaway
