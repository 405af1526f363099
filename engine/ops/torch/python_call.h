#pragma once
// Internals of torch_calls: a Python call bound to a signature, and the tables of functions with logic of their own in
// Python. Any other function becomes the ATen operator of the same name (aten_packet.cpp).
#include <span>

#include "engine/ops/torch/torch_calls.h"

namespace cutaway::torchcalls {

class PythonCall;

/// effectOf() of a call that is not in a graph yet.
const Op* effectOf(const Op& op, std::span<const Argument> args);

/// A function written here. `signature` is in schema notation with Any for most things; its name is what Python calls:
/// "torch.nn.functional.relu", "operator.add", and "Tensor.size" for methods (found as torch.size too).
struct PythonFunction {
    std::string_view signature;
    Fn<Argument(PythonCall&)> run;
};
std::span<const PythonFunction> activationFunctions();
std::span<const PythonFunction> attentionFunctions();
std::span<const PythonFunction> layerFunctions();
std::span<const PythonFunction> lossFunctions();
std::span<const PythonFunction> tensorFunctions();
std::span<const PythonFunction> castFunctions();
std::span<const PythonFunction> operatorFunctions();
std::span<const PythonFunction> forwardAdFunctions();
std::span<const PythonFunction> vmapFunctions();

/// Position of the parameter that a keyword means (axis is dim, input is self); -1 if there is none.
int parameterOf(const Schema& signature, std::string_view keyword);
/// Arguments in the order of the signature, as Python binds them; a trailing list parameter takes the rest of the
/// numbers, as in x.size(2, 3). False if the arguments do not fit; `why` says how.
bool bindPython(const Schema& signature, const std::vector<Argument>& args, const NamedArguments& keywords,
                std::vector<Argument>& bound, std::string& why);

class PythonCall {
  public:
    PythonCall(GraphBuilder& builder, Module* module, std::string name, const AutocastState* autocast)
        : m_builder(&builder), m_module(module), m_name(std::move(name)), m_autocast(autocast) {}
    /// See bindPython(). To be called before arguments are read.
    bool bind(const Schema& signature, const std::vector<Argument>& args, const NamedArguments& keywords,
              std::string& why);

    const Argument& operator[](std::string_view param) const;
    bool given(std::string_view param) const { return !(*this)[param].isNone(); }
    bool flag(std::string_view param) const { return (*this)[param].asInt().value_or(0) != 0; }
    double real(std::string_view param) const { return (*this)[param].asReal().value_or(0); }
    std::string text(std::string_view param) const;
    /// Type of a tensor argument; an error and an empty type if it is none.
    TensorType tensor(std::string_view param);

    /// The ATen operator `packet` (without "aten."), its overload chosen by the arguments.
    Argument aten(std::string_view packet, std::vector<Argument> args, NamedArguments keywords = {});
    /// The same with a trailing underscore if the call's `inplace` is set.
    Argument atenInplace(std::string_view packet, std::vector<Argument> args);
    /// Reports an error, of which the first is kept; the returned value means nothing.
    Argument fail(std::string what, std::vector<std::string> notes = {});
    bool failed() const { return m_builder->error().has_value(); }
    /// A tensor of literal data: a constant of the module.
    Argument constant(const Argument& data, std::optional<DType> dtype);

    GraphBuilder& builder() { return *m_builder; }
    const std::string& name() const { return m_name; }

  private:
    GraphBuilder* m_builder;
    Module* m_module;
    std::string m_name;
    const AutocastState* m_autocast;
    const Schema* m_signature = nullptr;
    std::vector<Argument> m_bound;
};

const TensorType* tensorOf(const Argument& argument);
/// A number known while compiling, or an expression over sizes.
bool isPythonNumber(const Argument& argument);
/// Replaces nodes whose value is known (sizes, tuples of sizes) by the value.
Argument knownValue(const Argument& argument);

/// The overload that takes these arguments. Names Python also knows (axis for dim) are understood; None for a keyword
/// that the operator does not have is dropped.
Result<Argument> callPacket(GraphBuilder& builder, std::string_view packet, const std::vector<Argument>& args,
                            const NamedArguments& keywords, const AutocastState* autocast = nullptr);
bool hasPacket(std::string_view packet);
/// Its overloads, in the order in which Python tries them.
std::span<const Op* const> packetOverloads(std::string_view packet);
/// The arguments by parameter if they fit the overload.
std::optional<std::vector<Argument>> bindOverload(const Op& op, const std::vector<Argument>& args,
                                                  const NamedArguments& keywords, bool numbersAsTensors);
int overloadParameter(const Schema& schema, std::string_view keyword);
/// Whether an overload has a parameter of this name; "input" is the first one, self.
bool packetTakes(std::string_view packet, std::string_view param);

/// self[index], self[index] = value.
Argument subscript(PythonCall& call, const Argument& self, const Argument& index);
Argument assignSubscript(PythonCall& call, const Argument& self, const Argument& index, const Argument& value);

}  // namespace cutaway::torchcalls
