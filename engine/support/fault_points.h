#pragma once
// Places where tests make things go wrong, to see that errors end in words there and that the tools find them.
//
// CUTAWAY_FAULT, or setFault, asks for faults as "PLACE:NAME:KIND", several separated by ';'.
// PLACE   NAME                                      where
// pass    the pass's                                when the pass begins; what changes graphs, when it is done
// rule    the rule's, or "pass/rule"                when a rewrite of it is made; what changes graphs, in its rewrites
// derive  the operator's                            when a call of it is differentiated: its gradients
// op      the operator's, "aten.relu.default"       the reference interpreter, at calls of it
// kernel  the operator's                            compiled code of the CPU, where it computes calls of it
// fusion  the operator's                            the same, in kernels that it shares with other calls; numbers only
// library the operator's                            where a library plans calls of it: refuse alone
// reader  "open"                                    when a file is opened
// job     the job's tag                             when a job begins
// NAME may be "*". "op@after:..." acts only where graphs are run that passes have made, "op@before:..." only where the
// graph is run that they began with (FaultSideScope).
// KIND    what happens
// internal, logic_error, out_of_range, length_error, bad_alloc, runtime_error, system_error, bad_function_call,
// bad_variant_access, int           the exception, the last one none of the standard's
// crash, abort                      the process dies of SIGSEGV, of SIGABRT
// hang                              it does nothing any more
// sigterm                           it hangs, and ignores SIGTERM
// leak                              it takes memory and writes to it until it gets no more: std::bad_alloc
// fork                              it starts three children that leave its session and hang; it goes on itself
// wrong                             graphs and values get other numbers, off by far more than rounding
// nan                               they get NaN
// refuse                            the library does not take the call
// outside                           op, kernel: what lies behind a value in memory is overwritten
// invalid                           pass and rule: a graph that the verifier refuses
#include <string>
#include <string_view>

namespace cutaway {

/// What the place itself has to do.
enum class FaultEffect : uint8_t { None, Wrong, Nan, Invalid, Outside, Refuse };

/// Whether anything is asked for; costs one load.
bool faultsAsked();
/// Whether anything is asked for at places of this kind.
bool faultsAskedAt(std::string_view place);
/// Throws, or ends or stops the process, if that is asked for here. `owner`: what the name belongs to, so that
/// "owner/name" is meant, too. Costs one load where nothing is asked for.
void faultPoint(std::string_view place, std::string_view name, std::string_view owner = {});
/// Of the faults that are asked for here the first that the place has to bring about.
FaultEffect faultEffect(std::string_view place, std::string_view name, std::string_view owner = {});

/// In place of the environment's; empty: none. Child processes that run graphs get it, too.
void setFault(const std::string& faults);
/// What is asked for.
std::string askedFaults();

enum class FaultSide : uint8_t { None, Before, After };
/// Which graph this thread runs, for "op@before" and "op@after", until the end of the scope.
class FaultSideScope {
  public:
    explicit FaultSideScope(FaultSide side);
    ~FaultSideScope();
    FaultSideScope(const FaultSideScope&) = delete;
    FaultSideScope& operator=(const FaultSideScope&) = delete;

  private:
    FaultSide m_before;
};

}  // namespace cutaway
