#pragma once
// A joint graph beside what it differentiates: gradients along a random direction, and how the results move along it.
// Everything is computed in f64.
#include <functional>
#include <set>

#include "engine/numerics/side_by_side.h"

namespace cutaway {

struct ProbeOptions {
    uint64_t seed = 1;
    std::function<void(const Node&)> begin;  // called before each node
    const CancelToken* cancel = nullptr;
};

/// One sum over elements, with what it is usually as large as: the root of the sum of squares of what is added.
struct Dot {
    double sum = 0, usual = 0;
};

/// The scalar that is differentiated is the sum of all results that have a tangent, times it. Inputs move by
/// step * u * max(|x|, a tenth of the tensor's root mean square), u uniform in [-1, 1] from seed, input and element.
/// What the graph says gradients do not flow through stays as it is, and draws repeat.
class GradientProbe {
  public:
    /// `joint`: ready to run, its inputs and results marked as what they are (InputSpec, OutputSpec).
    GradientProbe(ReadyGraph joint, ProbeOptions options);

    /// Positions of the inputs that have a gradient, and the names of the nodes that compute these.
    struct Gradient {
        size_t input;
        const Node *primal, *node;
    };
    const std::vector<Gradient>& gradients() const { return m_gradients; }
    /// Moves the point at which all is computed; 0 is what the graph is given.
    void moveTo(double offset);
    /// Runs the joint graph, unless it has run there: for each gradient its product with the direction.
    Result<void> differentiate();
    const std::vector<Dot>& products() const { return m_products; }
    /// The scalar where the inputs of these gradients have moved by `step`. Errors: the graph does not run.
    Result<double> scalarAt(double step, const std::vector<size_t>& moved);
    /// The sum of magnitudes of what makes the scalar: how it is rounded.
    double magnitude() const { return m_magnitude; }
    /// Operators on the way to a result that f64 could not compute, or whose derivative is none of the function's by
    /// design: nothing can be said then.
    const std::set<std::string>& blind() const { return m_blind; }
    int runs() const { return m_runs; }
    /// The part that computes the scalar, and which of its values gradients flow through, by id.
    const ReadyGraph& forward() const { return m_forward; }
    const std::vector<bool>& flow() const { return m_flow; }

  private:
    struct Results {
        double sum = 0, magnitude = 0;
    };
    Result<Results> run(const ReadyGraph& graph, double step, const std::set<NodeId>& moved, bool gradients);
    double rootMeanSquare(size_t input);

    ReadyGraph m_joint, m_forward;
    ProbeOptions m_options;
    std::vector<bool> m_flow;
    std::vector<Gradient> m_gradients;
    std::map<NodeId, std::vector<size_t>>
        m_resultsOf;                       // inputs that are tangents, by the node that computes the result
    std::map<NodeId, size_t> m_inputs;     // positions of all
    std::map<NodeId, TensorList> m_fixed;  // values behind which no gradient flows
    std::map<size_t, double> m_scales;
    std::vector<Dot> m_products;
    double m_offset = 0, m_magnitude = 0;
    bool m_differentiated = false;
    std::set<std::string> m_blind;
    int m_runs = 0;
};

}  // namespace cutaway
