#include "engine/tensor/tensor.h"

#include <cstdlib>

#include "engine/support/check.h"
#include "engine/support/checked.h"
#include "engine/support/machine.h"
#include "engine/support/out_of_memory.h"

namespace cutaway {

namespace {

std::shared_ptr<void> alignedMemory(size_t bytes) {
    const bool large = bytes >= 2 * kLargePage;
    const size_t unit = large ? kLargePage : 64, line = 64;
    void* memory = nullptr;  // whole lines, but no whole large pages, as std::aligned_alloc would want
    if (::posix_memalign(&memory, unit, std::max<size_t>(line, (bytes + line - 1) / line * line)) != 0)
        throw OutOfMemory(bytes);
    if (large) wantLargePages({static_cast<std::byte*>(memory), bytes});
    return {memory, std::free};
}

}  // namespace

std::shared_ptr<Storage> Storage::allocateUninitialized(size_t bytes) {
    auto storage = std::make_shared<Storage>();
    const std::shared_ptr<void> memory = alignedMemory(bytes);
    storage->m_data = static_cast<std::byte*>(memory.get());
    storage->m_size = bytes;
    storage->m_owner = memory;
    return storage;
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes) {
    auto storage = allocateUninitialized(bytes);
    std::memset(storage->m_data, 0, bytes);
    return storage;
}

std::shared_ptr<Storage> Storage::view(const void* data, size_t bytes, std::shared_ptr<const void> owner) {
    auto storage = std::make_shared<Storage>();
    storage->m_data = static_cast<std::byte*>(const_cast<void*>(data));
    storage->m_size = bytes;
    storage->m_readOnly = true;
    storage->m_owner = std::move(owner);
    return storage;
}

std::shared_ptr<Storage> Storage::deferred(size_t bytes, Fetch fetch) {
    auto storage = std::make_shared<Storage>();
    storage->m_size = bytes;
    storage->m_readOnly = true;
    storage->m_pending = std::make_unique<Pending>();
    storage->m_pending->fetch = std::move(fetch);
    return storage;
}

Result<void> Storage::load() const {
    if (m_pending == nullptr) return {};
    const std::lock_guard lock(m_pending->mutex);
    if (m_data.load(std::memory_order_acquire) != nullptr) return {};
    const std::shared_ptr<void> memory = alignedMemory(m_size);
    auto* const at = static_cast<std::byte*>(memory.get());
    CT_TRY_VOID(m_pending->fetch({at, m_size}));
    m_pending->fetch = nullptr;  // with it goes the open file
    m_owner = memory;
    m_data.store(at, std::memory_order_release);
    return {};
}

Result<std::shared_ptr<Storage>> Storage::forOneUse(const std::shared_ptr<Storage>& storage) {
    if (storage->m_pending == nullptr) return storage;
    const std::lock_guard lock(storage->m_pending->mutex);
    if (storage->m_data.load(std::memory_order_acquire) != nullptr) return storage;
    std::shared_ptr<Storage> once = allocateUninitialized(storage->m_size);
    CT_TRY_VOID(storage->m_pending->fetch({once->data(), once->size()}));
    return once;
}

std::shared_ptr<Storage> Storage::foreign(void* address, size_t bytes, std::shared_ptr<const void> owner) {
    auto storage = std::make_shared<Storage>();
    storage->m_foreign = static_cast<std::byte*>(address);
    storage->m_size = bytes;
    storage->m_owner = std::move(owner);
    return storage;
}

std::byte* Storage::loadOrThrow() const {
    CT_CHECK(m_foreign == nullptr, "the host reads no memory of a device");
    if (const auto loaded = load(); !loaded) throw UnreadableData(loaded.error());
    return m_data.load(std::memory_order_acquire);
}

Dims contiguousStrides(std::span<const int64_t> sizes) {
    Dims strides(sizes.size());
    int64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = step;
        if (i > 0) step = checkedMul(step, std::max<int64_t>(sizes[i], 1));  // the product of all is not a dim's stride
    }
    return strides;
}

namespace {
std::string listed(std::span<const int64_t> sizes) {
    std::string text = "[";
    for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + "]";
}
}  // namespace

int64_t numel(std::span<const int64_t> sizes) {
    int64_t product = 1;
    for (const int64_t size : sizes) {
        if (size < 0)
            throw SizeError("the size " + std::to_string(size) + " of a tensor " + listed(sizes) + " is negative");
        if (__builtin_mul_overflow(product, size, &product))
            throw SizeError("a tensor " + listed(sizes) + " has more elements than 64 bits can count");
    }
    return product;
}

int64_t extent(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
    int64_t first = offset, last = offset;
    bool fits = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
        int64_t reach = 0;
        int64_t& end = strides[i] < 0 ? first : last;
        fits = fits && sizes[i] > 0 && !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
               !__builtin_add_overflow(end, reach, &end);
    }
    if (!fits || last == std::numeric_limits<int64_t>::max())
        throw SizeError("sizes " + listed(sizes) + " with strides " + listed(strides) + " lead outside of 64 bits");
    if (first < 0)
        throw SizeError("sizes " + listed(sizes) + " with strides " + listed(strides) + " lead to element " +
                        std::to_string(first) + ", before the start of the storage");
    return last + 1;
}

size_t checkedBytes(DType dtype, int64_t elements, std::span<const int64_t> sizes) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, int64_t{byteSize(dtype)}, &bytes) ||
        bytes > std::numeric_limits<int64_t>::max() - 64)
        throw SizeError("a tensor " + std::string(info(dtype).abbreviation) + listed(sizes) +
                        " would have more than 2^63 bytes");
    return static_cast<size_t>(bytes);
}

double toDouble(const Scalar& scalar) {
    return std::visit(
        [](auto value) -> double {
            if constexpr (std::is_same_v<decltype(value), std::complex<double>>) return value.real();
            else return static_cast<double>(value);
        },
        scalar);
}
int64_t toInt(const Scalar& scalar) {
    if (const auto* integer = std::get_if<int64_t>(&scalar)) return *integer;
    if (const auto* flag = std::get_if<bool>(&scalar)) return *flag;
    const double value = toDouble(scalar);
    if (!(value > -9.2e18 && value < 9.2e18)) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(value);
}
bool isFloatingScalar(const Scalar& scalar) { return std::holds_alternative<double>(scalar); }

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, Dims sizes, Dims strides, int64_t offset, Device device)
    : m_storage(std::move(storage)),
      m_dtype(dtype),
      m_device(device),
      m_sizes(std::move(sizes)),
      m_strides(std::move(strides)),
      m_offset(offset) {
    CT_CHECK(m_sizes.size() == m_strides.size(), "a tensor has one stride per size");
    if (!m_storage || byteSize(m_dtype) == 0) return;
    const int64_t reached = extent(m_sizes, m_strides, m_offset),
                  available = static_cast<int64_t>(m_storage->size()) / byteSize(m_dtype);
    if (reached > available)
        throw SizeError("sizes " + listed(m_sizes) + " with strides " + listed(m_strides) + " at offset " +
                        std::to_string(m_offset) + " reach element " + std::to_string(reached - 1) +
                        " of a storage of " + std::to_string(available) + " elements");
}

Tensor Tensor::empty(DType dtype, Dims sizes, Dims strides) {
    if (strides.empty()) strides = contiguousStrides(sizes);
    // With strides of 0 the storage is small, but the number of elements must fit, too: kernels count all of them.
    checkedBytes(dtype, cutaway::numel(sizes), sizes);
    auto storage = Storage::allocateUninitialized(checkedBytes(dtype, extent(sizes, strides), sizes));
    return Tensor(std::move(storage), dtype, std::move(sizes), std::move(strides));
}
Tensor Tensor::zeros(DType dtype, Dims sizes) {
    auto strides = contiguousStrides(sizes);
    auto storage = Storage::allocate(checkedBytes(dtype, cutaway::numel(sizes), sizes));
    return Tensor(std::move(storage), dtype, std::move(sizes), std::move(strides));
}
Tensor Tensor::full(DType dtype, Dims sizes, const Scalar& value) {
    Tensor one = empty(dtype, {});
    if (const auto* z = std::get_if<std::complex<double>>(&value)) storeElements(dtype, one.data(), 1, 1, z);
    else if (const auto* real = std::get_if<double>(&value)) storeElements(dtype, one.data(), 1, 1, real);
    else {
        const int64_t integer = toInt(value);
        storeElements(dtype, one.data(), 1, 1, &integer);
    }
    if (sizes.empty()) return one;
    Tensor out = empty(dtype, std::move(sizes));
    copyInto(out, one);
    return out;
}
Tensor Tensor::scalar(DType dtype, const Scalar& value) { return full(dtype, {}, value); }

bool Tensor::isContiguous() const {
    int64_t step = 1;
    for (size_t i = m_sizes.size(); i-- > 0;) {
        if (m_sizes[i] == 0) return true;
        if (m_sizes[i] != 1 && m_strides[i] != step) return false;
        step *= m_sizes[i];
    }
    return true;
}

Tensor Tensor::view(Dims sizes, Dims strides, int64_t offset) const {
    return Tensor(m_storage, m_dtype, std::move(sizes), std::move(strides), offset, m_device);
}
Tensor Tensor::viewAs(DType dtype) const {
    CT_CHECK(byteSize(dtype) == byteSize(m_dtype), "reinterpreting keeps the item size");
    Tensor out = *this;
    out.m_dtype = dtype;
    return out;
}
Tensor Tensor::contiguous() const { return isContiguous() ? *this : clone(); }
Tensor Tensor::clone(Dims strides) const {
    Tensor out = empty(m_dtype, m_sizes, std::move(strides));
    out.m_device = m_device;
    copyInto(out, *this);
    return out;
}
Tensor Tensor::to(DType dtype) const {
    if (dtype == m_dtype) return *this;
    Tensor out = empty(dtype, m_sizes);
    out.m_device = m_device;
    copyInto(out, *this);
    return out;
}

Scalar Tensor::item(int64_t position) const {
    if (numel() == 0) throw SizeError("a number is read from a tensor " + listed(m_sizes) + ", which has no elements");
    int64_t at = m_offset;
    for (size_t i = m_sizes.size(); i-- > 0;) {
        at += position % m_sizes[i] * m_strides[i];
        position /= m_sizes[i];
    }
    const void* element = m_storage->data() + at * byteSize(m_dtype);
    if (isComplex(m_dtype)) {
        std::complex<double> value;
        loadElements(m_dtype, element, 1, 1, &value);
        return value;
    }
    if (isFloating(m_dtype)) {
        double value;
        loadElements(m_dtype, element, 1, 1, &value);
        return value;
    }
    int64_t value;
    loadElements(m_dtype, element, 1, 1, &value);
    if (m_dtype == DType::Bool) return value != 0;
    return value;
}

Tensor broadcastTo(const Tensor& tensor, const Dims& sizes) {
    if (tensor.sizes() == sizes) return tensor;
    const size_t rank = tensor.sizes().size(), lead = rank <= sizes.size() ? sizes.size() - rank : 0;
    bool fits = rank <= sizes.size();
    Dims strides(sizes.size(), 0);
    for (size_t i = 0; fits && i < rank; ++i) {
        const int64_t own = tensor.sizes()[i];
        fits = own == 1 || own == sizes[lead + i];
        strides[lead + i] = own == sizes[lead + i] ? tensor.strides()[i] : 0;
    }
    if (!fits)
        throw SizeError("a tensor of sizes " + listed(tensor.sizes()) + " stands where one of " + listed(sizes) +
                        " is wanted");
    return tensor.view(sizes, std::move(strides), tensor.offset());
}

namespace {

/// Calls body(targetOffset, sourceOffset) for each innermost row, offsets in elements.
template <class Body>
void forEachRow(const Dims& sizes, const Dims& a, const Dims& b, Body&& body) {
    const size_t outer = sizes.size() - 1;
    Dims index(outer, 0);
    int64_t at = 0, from = 0;
    while (true) {
        body(at, from);
        size_t dim = outer;
        while (dim-- > 0) {
            // Never a step beyond the end: a dim of one element may have any stride.
            if (++index[dim] < sizes[dim]) {
                at += a[dim];
                from += b[dim];
                break;
            }
            at -= a[dim] * (sizes[dim] - 1);
            from -= b[dim] * (sizes[dim] - 1);
            index[dim] = 0;
        }
        if (dim == static_cast<size_t>(-1)) return;
    }
}

void copyBytesRow(int item, std::byte* to, int64_t toStep, const std::byte* from, int64_t fromStep, int64_t count) {
    if (toStep == 1 && fromStep == 1) {
        std::memcpy(to, from, static_cast<size_t>(count * item));
        return;
    }
    auto strided = [&](auto tag) {
        using T = decltype(tag);
        auto* out = reinterpret_cast<T*>(to);
        const auto* in = reinterpret_cast<const T*>(from);
        for (int64_t i = 0; i < count; ++i) out[i * toStep] = in[i * fromStep];
    };
    switch (item) {
        case 1: return strided(uint8_t{});
        case 2: return strided(uint16_t{});
        case 4: return strided(uint32_t{});
        case 8: return strided(uint64_t{});
        default: return strided(std::complex<double>{});
    }
}

}  // namespace

void copyInto(Tensor& target, const Tensor& source) {
    if (target.numel() == 0) return;
    const Tensor from = broadcastTo(source, target.sizes());
    Dims sizes = target.sizes(), a = target.strides(), b = from.strides();
    if (sizes.empty()) {
        sizes = {1};
        a = {1};
        b = {1};
    }
    if (target.isContiguous() && from.isContiguous()) {
        sizes = {target.numel()};
        a = b = {1};
    }
    const int64_t count = sizes.back(), itemTo = byteSize(target.dtype()), itemFrom = byteSize(source.dtype());
    auto* to = static_cast<std::byte*>(target.data());
    const auto* data = static_cast<const std::byte*>(from.data());
    if (target.dtype() == source.dtype()) {
        forEachRow(sizes, a, b, [&](int64_t at, int64_t start) {
            copyBytesRow(static_cast<int>(itemTo), to + at * itemTo, a.back(), data + start * itemFrom, b.back(),
                         count);
        });
        return;
    }
    // Integers travel as int64, f64 as double, complex as complex<double>, the rest as float. An int64 does not hold a
    // u64 for what is not an integer.
    auto convert = [&](auto tag) {
        using Compute = decltype(tag);
        std::array<Compute, 512> buffer;
        forEachRow(sizes, a, b, [&](int64_t at, int64_t start) {
            for (int64_t i = 0; i < count; i += 512) {
                const int64_t n = std::min<int64_t>(512, count - i);
                loadElements(source.dtype(), data + (start + i * b.back()) * itemFrom, b.back(), n, buffer.data());
                storeElements(target.dtype(), to + (at + i * a.back()) * itemTo, a.back(), n, buffer.data());
            }
        });
    };
    const DType made = target.dtype();
    if (isComplex(source.dtype())) convert(std::complex<double>{});
    else if (source.dtype() == DType::U64 && (made == DType::F64 || made == DType::C128)) convert(double{});
    else if (source.dtype() == DType::U64 && !isIntegral(made, true)) convert(float{});
    else if (isIntegral(source.dtype(), true)) convert(int64_t{});
    else if (source.dtype() == DType::F64) convert(double{});
    else convert(float{});
}

}  // namespace cutaway
