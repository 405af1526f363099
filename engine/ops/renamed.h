#pragma once
// Rows that are another operator's call: by another name, into `out`, or copied. Each file has a table of rows with
// `schema`, from which its OpDefs are made.
#include <algorithm>
#include <initializer_list>

#include "engine/ops/build.h"
#include "engine/support/check.h"

namespace cutaway {

/// The call of another operator with the same arguments: those that only a keyword gives by their name, all others by
/// their place. Parameters of the names in `without` do not go over.
Value sameCall(Decomposition& d, std::string_view op, std::initializer_list<std::string_view> without = {});

/// The table's row of an operator that was made of it.
template <class Row, size_t N>
const Row& rowOf(const Row (&table)[N], std::string_view op) {
    const auto row = std::find_if(std::begin(table), std::end(table),
                                  [&](const Row& each) { return each.schema.substr(0, each.schema.find('(')) == op; });
    CT_CHECK(row != std::end(table), "the rows that expand in this way are made of this table");
    return *row;
}

}  // namespace cutaway
