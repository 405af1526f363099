#pragma once
// How a graph becomes smaller. Every function leaves a graph that verifies; names of nodes stay, so that a value can be
// looked up by the name that its node had in the whole graph.
#include <memory>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// The node's value becomes an input, which has the node's name and stands behind the other inputs. Of a tuple each
/// result that is read. False: no value of it can be handed in (a size, an object, an input already).
bool makeInput(Module& module, Node& node);

/// A constant call stands for the input: of floats `value`, of integers 0, of truth values True. False: its type has no
/// such call (sizes that are symbols, gaps between its elements, a dtype without literals), or it is written to.
bool makeConstant(Module& module, Node& input, double value);

/// Readers of the node read one of its operands instead, one with the same dtype, device, sizes and strides. False:
/// there is none.
bool bypass(Module& module, Node& node);

/// The same for each part of a call that returns a tuple. False: no part has such an operand.
bool bypassParts(Module& module, Node& node);

/// Drops calls and attributes that nobody reads, last first, and the inputs that are then read by nobody. Which calls
/// stay although nobody reads them: those that write to memory or check something; of random ones those that
/// `keepRandom` asks to keep.
void dropDead(Module& module, bool keepRandom = false);
/// Whether something was dropped.
bool dropDeadCalls(Module& module, bool keepRandom);
bool dropUnusedInputs(Module& module);

/// The graph returns these values alone, in this order.
void returnOnly(Module& module, const std::vector<Argument>& values);
/// The graph returns only its outputs at these positions, in this order.
void keepOutputs(Module& module, const std::vector<size_t>& positions);

/// Calls and attribute reads in order: what is dropped, bypassed or turned into inputs. A getitem is left out, since it
/// goes with the call whose result it takes; so is a constant that is filled with one literal, since it is as plain as
/// an input.
std::vector<NodeId> cuttableCalls(const Module& module);

}  // namespace cutaway
