#pragma once
#include <string>
#include <string_view>

namespace cutaway {

/// The script with the classes of its graphs inside of the class that it runs, named as the attributes that hold them:
/// PyTorch 2.15 writes the graph of each higher-order call as a class of its own in front (REPRO-3). A script of one
/// class stays as it is.
std::string withNestedClasses(std::string_view script);

}  // namespace cutaway
