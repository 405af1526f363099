#pragma once
// What a pass is given beside the graph: the request, and the hooks, whose answers are recorded here.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/request.h"
#include "cutaway/trace.h"

namespace cutaway {

class PassContext {
  public:
    /// Both must outlive the context. Without hooks nothing is known of the device and nothing can be timed.
    PassContext(const CompileRequest& request, const CompileHooks* hooks = nullptr)
        : m_request(&request), m_hooks(hooks) {}

    const CompileRequest& request() const { return *m_request; }
    /// Example values of the size symbols of the module that the pass works on.
    std::map<std::string, int64_t> sizeHints;

    // The hooks' questions (CompileHooks). None: nobody knows.
    std::optional<double> timeGraph(const std::string& graph) const;
    std::optional<double> deviceFact(const std::string& fact) const;
    std::optional<double> recall(const std::string& key) const;
    /// Keeps the value by key for `recall`; without a service for that, until the program ends.
    void remember(const std::string& key, double value) const;

    /// Questions and answers so far, in order.
    const std::vector<Measurement>& asked() const { return m_asked; }
    /// From now on questions that are among these get these answers: the n-th time a question is asked its n-th answer,
    /// then always its last.
    void replay(const std::vector<Measurement>& recorded) { m_recorded = &recorded; }

  private:
    template <class Ask>
    std::optional<double> answer(std::string_view kind, const std::string& question, Ask&& ask) const;

    const CompileRequest* m_request;
    const CompileHooks* m_hooks;
    const std::vector<Measurement>* m_recorded = nullptr;
    mutable std::vector<Measurement> m_asked;
};

}  // namespace cutaway
