#pragma once
// Which engine this is: no other engine may use what it compiles.

namespace cutaway {

/// A digest of the engine's sources, the same in every program that is made of them.
const char* buildId();

}  // namespace cutaway
