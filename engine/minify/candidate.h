#pragma once
// A graph that may fail as the one that is minified does, and whoever tells whether it does.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/request.h"
#include "cutaway/result.h"
#include "engine/ir/module.h"

namespace cutaway {

/// Values of nodes, by their names in the graph that is minified.
using NamedValues = std::map<std::string, Tensor>;

struct Candidate {
    std::shared_ptr<const Module> module;
    CompileRequest request;
    /// Values of inputs that differ from what the whole graph computed under their names, since sizes or dtype of the
    /// input were changed. Null: none.
    std::shared_ptr<const NamedValues> values;
};

/// Tells whether graphs fail in the wanted way. Errors end the search: it was cancelled, or no test can be made.
class Trials {
  public:
    virtual ~Trials() = default;
    using Make = std::function<std::optional<Candidate>(size_t number)>;
    struct Hit {
        size_t number = 0;
        Candidate candidate;
    };
    virtual Result<bool> fails(const Candidate& candidate) = 0;
    /// The first of `count` candidates that fails, and its number; none if no one does. `make` is called in order,
    /// once each, and gives nothing where there is no such graph. Candidates behind the first that fails may have been
    /// tried, too; the answer does not depend on it, nor does what is counted.
    virtual Result<std::optional<Hit>> firstFailing(size_t count, const Make& make) {
        for (size_t i = 0; i < count; ++i) {
            std::optional<Candidate> candidate = make(i);
            if (!candidate) continue;
            CT_TRY(const bool bad, fails(*candidate));
            if (bad) return std::optional<Hit>(Hit{i, std::move(*candidate)});
        }
        return std::optional<Hit>();
    }
    /// A smaller graph that fails, as soon as it is known.
    virtual Result<void> accepted(const Candidate& candidate, const std::string& how) {
        static_cast<void>(candidate), static_cast<void>(how);
        return {};
    }
    /// Has the whole graph compute the values of these nodes, so that candidates can have them as inputs. Nodes that
    /// are not tensors are left out.
    virtual Result<void> computeValues(const std::vector<std::string>& names) {
        static_cast<void>(names);
        return {};
    }
    /// Passes that change the candidate, by name, those that are required included; empty if nobody knows.
    virtual Result<std::vector<std::string>> changingPasses(const Candidate& candidate) {
        static_cast<void>(candidate);
        return std::vector<std::string>();
    }
    /// Names of calls of the whole graph near which it goes wrong, most likely group first; empty if nobody knows.
    virtual std::vector<std::vector<std::string>> near() const { return {}; }
    /// The value of a given input, if values matter.
    virtual std::optional<Tensor> valueOf(const Candidate& candidate, const std::string& input) {
        static_cast<void>(candidate), static_cast<void>(input);
        return std::nullopt;
    }
};

}  // namespace cutaway
