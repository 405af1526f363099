#pragma once
// What answers Cutaway in a plugin's process. Uses nothing of the engine, so that its process starts in a millisecond.
//
// A message is the number of bytes that follow, the number of texts, and each text with its size before it (numbers as
// this machine has them, 64 bits). A request is: the kind of call, the number of the pass, importer, oracle or
// colouring, a file's name, what it works on, and settings as "key=value"; of a judge the types of two tensors, then
// the bytes of each. A reply is: "ok", "yes" or "failed", why it failed, and then what the call said through its host,
// as groups of a word and as many texts as belong to it.
//
// Of a library ("takes", "compute") a request is: the kind, the library's number, the operator, the memory in which
// tensors lie (descriptor and bytes of that of constants, of other operands, of results; none for "takes"), threads,
// the numbers of operands and of results; of each of these dtype, rank, sizes, strides, memory ("c", "o", "r" or "-"),
// first byte and bytes; and of each argument two texts, its name and "none", "tensor NUMBER", "int N", "real R", "bool
// N", "text T", "dtype D" or "list N", behind which the list's N items follow.
#include "plugins/cutaway_plugin.h"

extern "C" {

/// Answers requests until `input` ends; 0 then. Nonzero: the plugin breaks the contract, and a reply has said why.
__attribute__((visibility("default"))) int cutaway_serve_plugin(const ct_plugin* plugin, int input, int output);
}
