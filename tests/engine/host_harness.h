#pragma once
// Graphs as host programs: compiled, run by the interpreter of host programs, and printed.
#include <QString>
#include <QTemporaryDir>

#include "engine/ir/module.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/runtime/cpu/host_package.h"

namespace cutaway::testing {

constexpr int kContexts = 10;  // that run one program at once

/// A graph, compiled both ways.
struct Compiled {
    QTemporaryDir folder;
    HostProgram host;
    std::vector<Tensor> constants;
    std::shared_ptr<LoadedProgram> loaded;
    std::vector<std::string> libraries;
};
/// `weights`: of the function's constant parameters, at their places.
Result<std::unique_ptr<Compiled>> compiled(const Snapshot& module, const std::vector<Tensor>& weights = {});

/// What differs, be it a bit; empty if nothing does.
QString difference(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted);

enum class Agree { Closely, ToTheBit };
/// Two runs in a row beside the interpreter. What differs, or an error; empty if nothing. The results go to `outputs`.
QString runProblem(HostContext& context, const Module& module, const std::vector<Tensor>& inputs,
                   Agree how = Agree::Closely, std::vector<Tensor>* outputs = nullptr);
/// The printed program, compiled, in so many contexts at once. What differs from `wanted`, or an error; empty if
/// nothing.
QString printedProblem(const Compiled& made, const std::string& source, const std::vector<Tensor>& given,
                       const std::vector<Tensor>& wanted);

}  // namespace cutaway::testing
