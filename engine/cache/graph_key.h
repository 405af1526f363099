#pragma once
// What a compiled graph depends on, each ingredient by itself, so that a miss can say which one is another.
#include <string>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

struct Ingredient {
    std::string name;    // "graph", "request"
    std::string digest;  // of all of it
    std::string text;    // a few words for people
};

/// One number for all of them.
std::string keyOf(const std::vector<Ingredient>& ingredients);
Ingredient ingredient(std::string name, const std::string& all, std::string text);

/// "graph", "inputs and outputs", "size symbols" and "constants" of a module as it was opened. Names of inner values do
/// not count, those of inputs, outputs and tensors do. The values of constants come from `values`: a digest of the
/// bytes of each.
std::vector<Ingredient> graphIngredients(const Module& module, const std::string& values);
/// Who compiles it, and on what.
struct CompileEnvironment {
    std::string engine, version;  // digest of the engine's sources
    std::string build;
    std::string compiler;  // with the processor that it compiles for; its first line for people
    int threads = 0;
    std::string environment;
};
/// "engine", "build", "compiler and processor", "number of threads" and "environment".
std::vector<Ingredient> environmentIngredients(const CompileEnvironment& now);
/// A digest of the bytes of a module's tensors, each memory once. Errors: bytes that cannot be read.
Result<std::string> constantValues(const Module& module);

/// The difference to the nearest of other lists, as a sentence: "the request is another: --freeze, not (none)". Empty
/// where nothing differs.
std::string differenceText(const std::vector<Ingredient>& wanted, const std::vector<Ingredient>& there);
/// How many ingredients differ.
size_t differenceCount(const std::vector<Ingredient>& a, const std::vector<Ingredient>& b);

/// As lines of a file, and back; lines of another form are left out.
std::string ingredientsText(const std::vector<Ingredient>& ingredients);
std::vector<Ingredient> parseIngredients(const std::string& text);

}  // namespace cutaway
