#include "engine/formats/package_constants.h"

#include <elf.h>

#include <cstring>

#include "engine/tensor/dtype.h"

namespace cutaway {
namespace {

constexpr std::string_view kBegin = "_binary_constants_bin_start", kEnd = "_binary_constants_bin_end";
constexpr uint64_t kMostTable = uint64_t{256} << 20;

struct BytesOfFile {
    uint64_t offset = 0, bytes = 0;
};

/// Where the linker put the constants: between two symbols of a 64-bit library, of which nothing is believed.
class ConstantsOfLibrary {
  public:
    ConstantsOfLibrary(const ByteSource& library, const std::string& name) : m_library(library), m_name(name) {}

    Result<BytesOfFile> find() {
        Elf64_Ehdr head;
        CT_TRY_VOID(readStruct(0, head));
        if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
            head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_shentsize != sizeof(Elf64_Shdr))
            return invalidInput("it is not a library of a 64-bit little-endian machine", m_name);
        m_sections.resize(head.e_shnum);
        for (size_t i = 0; i < m_sections.size(); ++i)
            CT_TRY_VOID(readStruct(head.e_shoff + i * sizeof(Elf64_Shdr), m_sections[i]));
        for (const Elf64_Shdr& section : m_sections)
            if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB) CT_TRY_VOID(readSymbols(section));
        if (!m_begin || !m_end || *m_end < *m_begin)
            return unsupported("the library names no constants", m_name,
                               {"its constants may lie in files of their own"});
        for (const Elf64_Shdr& section : m_sections)
            if (section.sh_type == SHT_PROGBITS && section.sh_addr <= *m_begin &&
                *m_end - section.sh_addr <= section.sh_size)
                return BytesOfFile{section.sh_offset + (*m_begin - section.sh_addr), *m_end - *m_begin};
        return invalidInput("the library's constants lie in none of its sections", m_name);
    }

  private:
    template <class Struct>
    Result<void> readStruct(uint64_t offset, Struct& into) const {
        if (offset > m_library.size() || sizeof into > m_library.size() - offset)
            return invalidInput("the library is cut short", m_name);
        return m_library.readInto(offset, std::as_writable_bytes(std::span(&into, 1)));
    }
    Result<std::shared_ptr<Storage>> contents(const Elf64_Shdr& section) const {
        if (section.sh_size > kMostTable || section.sh_offset > m_library.size() ||
            section.sh_size > m_library.size() - section.sh_offset)
            return invalidInput("a table of the library lies outside of it", m_name);
        return m_library.read(section.sh_offset, section.sh_size);
    }
    Result<void> readSymbols(const Elf64_Shdr& section) {
        if (section.sh_link >= m_sections.size()) return invalidInput("the library's symbols have no names", m_name);
        CT_TRY(const auto symbols, contents(section));
        CT_TRY(const auto strings, contents(m_sections[section.sh_link]));
        const std::string_view names(reinterpret_cast<const char*>(strings->data()), strings->size());
        for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->size(); at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            std::memcpy(&symbol, static_cast<const char*>(static_cast<const void*>(symbols->data())) + at,
                        sizeof symbol);
            if (symbol.st_name >= names.size()) continue;
            const std::string_view rest = names.substr(symbol.st_name);
            const std::string_view name = rest.substr(0, rest.find('\0'));
            if (name == kBegin) m_begin = symbol.st_value;
            if (name == kEnd) m_end = symbol.st_value;
        }
        return {};
    }

    const ByteSource& m_library;
    const std::string& m_name;
    std::vector<Elf64_Shdr> m_sections;
    std::optional<uint64_t> m_begin, m_end;
};

}  // namespace

Result<Tensor> packagedTensor(const FileTree& tree, const PackagedModel& model, size_t constant) {
    const PackagedConstant& wanted = model.constants[constant];
    if (wanted.folded)
        return unsupported("it is computed when the package is loaded, and is not in the package", wanted.name);
    const auto dtype = dtypeFromAbbreviation(wanted.type.substr(0, wanted.type.find('[')));
    if (!dtype || !wanted.laidOut)
        return unsupported("the sources do not tell how its elements lie: " + wanted.type, wanted.name);
    if (model.library.empty()) return unsupported("the package has no library of the model", wanted.name);
    // One behind the other, each with its padding.
    uint64_t offset = 0;
    for (size_t i = 0; i < constant; ++i)
        if (!model.constants[i].folded) offset += static_cast<uint64_t>(std::max<int64_t>(model.constants[i].bytes, 0));
    CT_TRY(const ByteSource library, tree.read(model.library));
    CT_TRY(const BytesOfFile place, ConstantsOfLibrary(library, model.library).find());
    const auto bytes = static_cast<uint64_t>(std::max<int64_t>(wanted.bytes, 0));
    uint64_t last = wanted.offset < 0 ? place.bytes : static_cast<uint64_t>(wanted.offset);
    bool empty = false, sound = wanted.offset >= 0 && wanted.strides.size() == wanted.sizes.size();
    for (size_t d = 0; sound && d < wanted.sizes.size(); ++d) {
        const int64_t size = wanted.sizes[d], stride = wanted.strides[d];
        sound = size >= 0 && stride >= 0 && size < (int64_t{1} << 31) && stride < (int64_t{1} << 31);
        empty |= size == 0;
        if (sound && size > 0) last += static_cast<uint64_t>(size - 1) * static_cast<uint64_t>(stride);
    }
    const auto size = static_cast<uint64_t>(byteSize(*dtype));
    sound = sound && offset <= place.bytes && bytes <= place.bytes - offset &&
            (empty || (last < place.bytes && (last + 1) * size <= bytes));
    if (!sound) return invalidInput("the library holds fewer bytes than the constants take", wanted.name);
    if (empty) return Tensor::zeros(*dtype, wanted.sizes);
    CT_TRY(const auto data, library.read(place.offset + offset, bytes));
    return Tensor(data, *dtype, wanted.sizes, wanted.strides, wanted.offset);
}

}  // namespace cutaway
