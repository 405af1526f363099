#include "engine/rewrite/rewrite_watch.h"

namespace cutaway {
namespace {
thread_local const RewriteWatch::Told* t_told = nullptr;
}

RewriteWatch::RewriteWatch(Told told) : m_told(std::move(told)), m_before(t_told) { t_told = &m_told; }
RewriteWatch::~RewriteWatch() { t_told = m_before; }
const RewriteWatch::Told* RewriteWatch::current() { return t_told; }

}  // namespace cutaway
