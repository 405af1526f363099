// Fourier transforms: the algorithms of support/fourier.h, lines shared among tasks.
#include "engine/runtime/portable/portable.h"
#include "engine/support/fourier.h"

namespace cutaway::portable {
namespace {

/// (self, dim, normalization, ...)
fourier::Call transformOf(const Run& run) {
    const Strided self = run.in(0);
    const CtArgument& dims = run.call->args[1];
    fourier::Call call{{self.sizes, self.sizes + self.rank}, {}, integerOf(*run.call, 2)};
    for (int64_t i = 0; i < dims.integer; ++i) {
        const int64_t dim = dims.items[i].integer;
        call.dims.push_back(dim < 0 ? dim + self.rank : dim);
    }
    call.inParts = [&run](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
        run.share(count, [&](int32_t, int64_t begin, int64_t end) { body(begin, end); });
    };
    return call;
}
template <class T>
fourier::Load<T> linesOf(const Strided& self) {
    return [self](int64_t dim, int64_t line, T* to) {
        load(self.dtype, self.at(self.offsetOf(line, static_cast<int32_t>(dim))), self.strides[dim], self.sizes[dim],
             to);
    };
}
template <class T>
fourier::Store<T> linesInto(const Strided& out) {
    return [out](int64_t dim, int64_t line, const T* from) {
        store(out.dtype, out.at(out.offsetOf(line, static_cast<int32_t>(dim))), out.strides[dim], out.sizes[dim], from);
    };
}
void complexToComplex(const Run& run) {
    fourier::complexToComplex(transformOf(run), integerOf(*run.call, 3) != 0, linesOf<fourier::Complex>(run.in(0)),
                              linesInto<fourier::Complex>(run.out()));
}
void realToComplex(const Run& run) {
    const fourier::Call call = transformOf(run);
    const Strided out = run.out();
    fourier::realToComplex(call, out.sizes[call.dims.back()], linesOf<double>(run.in(0)),
                           linesInto<fourier::Complex>(out));
}
void complexToReal(const Run& run) {
    const fourier::Call call = transformOf(run);
    const Strided out = run.out();
    fourier::complexToReal(call, out.sizes[call.dims.back()], linesOf<fourier::Complex>(run.in(0)),
                           linesInto<double>(out));
}

constexpr Function kTransformFunctions[] = {
    {"aten._fft_c2c.default", complexToComplex},
    {"aten._fft_r2c.default", realToComplex},
    {"aten._fft_c2r.default", complexToReal},
};

}  // namespace

std::span<const Function> transformFunctions() { return kTransformFunctions; }

}  // namespace cutaway::portable
