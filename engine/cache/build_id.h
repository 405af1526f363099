#pragma once
// Which engine this is: what it compiles is no other engine's to use.

namespace cutaway {

/// A digest of the engine's sources, the same in every program that is made of them.
const char* buildId();

}  // namespace cutaway
