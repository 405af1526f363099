#include "plugins/host/library_calls.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

namespace {

/// Of a request: kind, number, operator, memory, threads, operands, results; then tensors and arguments.
constexpr size_t kOp = 2, kMemory = 3, kThreads = 4, kOperands = 5, kResults = 6, kFirst = 7;
constexpr size_t kAreas = 3;  // of constants, of other operands, of results

struct Area {
    void* at = nullptr;
    size_t bytes = 0;
};

/// The memory behind a descriptor, mapped anew where it has grown. Null: there is not enough address space.
char* mapped(int descriptor, size_t bytes, bool written) {
    static std::map<int, Area> areas;
    Area& area = areas[descriptor];
    if (area.bytes < bytes) {
        if (area.at != nullptr) ::munmap(area.at, area.bytes);
        area = {};
        void* const made =
            ::mmap(nullptr, bytes, written ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0);
        if (made == MAP_FAILED) return nullptr;
        area = {made, bytes};
    }
    return static_cast<char*>(area.at);
}

}  // namespace

const ct_tensor* LibraryCall::tensorOf(const std::string& text, const std::string& memory) {
    std::istringstream in(text);
    std::string dtype, where;
    size_t rank = 0, offset = 0, bytes = 0;
    in >> dtype >> rank;
    std::vector<int64_t>& sizes = m_numbers.emplace_back();
    std::vector<int64_t>& strides = m_numbers.emplace_back();
    for (std::vector<int64_t>* numbers : {&sizes, &strides})
        for (size_t d = 0; d < rank && in; ++d) in >> numbers->emplace_back();
    in >> where >> offset >> bytes;
    if (!in) {
        problem = "the request is incomplete";
        return nullptr;
    }
    const std::string& kept = m_texts.emplace_back(dtype);
    ct_tensor& tensor = m_tensors.emplace_back(
        ct_tensor{sizeof(ct_tensor), kept.c_str(), rank, sizes.data(), {nullptr, 0}, strides.data(), nullptr});
    const size_t number = where == "c" ? 0 : where == "o" ? 1 : where == "r" ? 2 : kAreas;
    if (number == kAreas || memory.empty()) return &tensor;
    std::istringstream areas(memory);
    int descriptor = -1;
    size_t size = 0;
    for (size_t i = 0; i <= number; ++i) areas >> descriptor >> size;
    char* const base = size > 0 ? mapped(descriptor, size, number == 2) : nullptr;
    if (base == nullptr) {
        problem = "the tensors of the call take more memory than there is";
        return nullptr;
    }
    tensor.data = {base + offset, bytes};
    if (number == 2) tensor.memory = base + offset;
    return &tensor;
}

const ct_argument* LibraryCall::argumentOf(const std::vector<std::string>& request, size_t& at) {
    if (at + 1 >= request.size()) {
        problem = "the request is incomplete";
        at = request.size();
        return nullptr;
    }
    const std::string& name = request[at];
    const std::string& value = request[at + 1];
    at += 2;
    const size_t blank = std::min(value.find(' '), value.size());
    const std::string kind = value.substr(0, blank);
    const std::string& text = m_texts.emplace_back(value.substr(std::min(blank + 1, value.size())));
    ct_argument& made = m_args.emplace_back();
    made.size = sizeof made;
    made.name = name.empty() ? nullptr : m_texts.emplace_back(name).c_str();
    const auto number = [&] { return std::strtoll(text.c_str(), nullptr, 10); };
    if (kind == "tensor") {
        made.kind = CT_ARG_TENSOR;
        const auto operand = static_cast<size_t>(number());
        if (operand < m_operands.size()) made.tensor = m_operands[operand];
    } else if (kind == "int" || kind == "bool") {
        made.kind = kind == "int" ? CT_ARG_INT : CT_ARG_BOOL;
        made.integer = number();
    } else if (kind == "real") {
        made.kind = CT_ARG_REAL;
        made.real = std::strtod(text.c_str(), nullptr);
    } else if (kind == "text" || kind == "dtype") {
        made.kind = kind == "text" ? CT_ARG_TEXT : CT_ARG_DTYPE;
        made.text = text.c_str();
    } else if (kind == "list") {
        made.kind = CT_ARG_LIST;
        std::vector<const ct_argument*>& items = m_lists.emplace_back();
        for (long long left = number(); left > 0 && problem.empty(); --left) items.push_back(argumentOf(request, at));
        items.push_back(nullptr);
        made.items = items.data();
    }
    return &made;
}

LibraryCall::LibraryCall(const std::vector<std::string>& request) {
    if (request.size() < kFirst) {
        problem = "the request is incomplete";
        return;
    }
    const size_t operands = std::strtoul(request[kOperands].c_str(), nullptr, 10),
                 results = std::strtoul(request[kResults].c_str(), nullptr, 10);
    size_t at = kFirst;
    for (; at < kFirst + operands + results && at < request.size() && problem.empty(); ++at)
        (at < kFirst + operands ? m_operands : m_results).push_back(tensorOf(request[at], request[kMemory]));
    m_results.push_back(nullptr);
    std::vector<const ct_argument*>& args = m_lists.emplace_back();
    while (at < request.size() && problem.empty()) args.push_back(argumentOf(request, at));
    args.push_back(nullptr);
    m_call = {sizeof(ct_call), request[kOp].c_str(), args.data(), m_results.data(),
              std::atoi(request[kThreads].c_str())};
}
