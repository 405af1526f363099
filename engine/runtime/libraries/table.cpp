#include "engine/runtime/libraries/table.h"

namespace cutaway {

const CtLibrary* libraryNamed(std::string_view name) {
    for (const CtLibrary* library : {&oneDnnLibrary(), &oneDnnBytesLibrary(), &copiesLibrary(), &attentionLibrary(),
                                     &lapackLibrary(), &portableLibrary()})
        if (name == library->name) return library;
    return nullptr;
}

}  // namespace cutaway
