#pragma once
// What checked-run says of gradients.
#include "app/cli/json_shape.h"
#include "cutaway/gradients.h"

namespace cutaway::cli {

Json toJson(const GradientCheck& check);
Json shapeOfGradientCheck();
void print(const GradientCheck& check);

}  // namespace cutaway::cli
