#!/usr/bin/env bash
# oneDNN 3.2 (PyPI: onednn-devel-cpu-gomp 2023.2.0, x86-64): relu without a slope and clip give a bound where the element is
# NaN, alone and as post-ops of a convolution or a matmul; relu with any slope, elu with alpha 0 (the same function) and tanh
# keep NaN. A guess from memory says that relu(NaN) is NaN, as in PyTorch's eager mode, and that the slope does not decide.
# Frameworks that fuse activations into oneDNN's products (PyTorch's freezing does) lose every NaN there.
#
# Seen: "NaN of 64: relu 0, relu with slope 64, clip 0, elu(0) 64, tanh 64; behind a convolution: relu 0, relu with slope 64,
# clip 0, elu(0) 64; behind a matmul: relu 0, elu(0) 64"
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check onednn-devel-cpu-gomp==2023.2.0
cat >"$work/nan.cpp" <<'CPP'
#include <oneapi/dnnl/dnnl.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_map>
#include <vector>
using namespace dnnl;
using tag = memory::format_tag;
using dt = memory::data_type;
constexpr int kChannels = 16, kSide = 2;
engine cpu(engine::kind::cpu, 0);
stream work(cpu);

int countNan(const memory& result, const memory::desc& plain) {
    memory out(plain, cpu);
    reorder(result, out).execute(work, const_cast<memory&>(result), out);
    work.wait();
    const float* x = static_cast<const float*>(out.get_data_handle());
    int count = 0;
    for (size_t i = 0; i < plain.get_size() / sizeof(float); ++i) count += std::isnan(x[i]);
    return count;
}
memory filled(const memory::desc& plain, float value) {
    memory m(plain, cpu);
    float* x = static_cast<float*>(m.get_data_handle());
    for (size_t i = 0; i < plain.get_size() / sizeof(float); ++i) x[i] = value;
    return m;
}
primitive_attr behind(algorithm what, float alpha, float beta) {
    post_ops ops;
    ops.append_eltwise(what, alpha, beta);
    primitive_attr attr;
    attr.set_post_ops(ops);
    return attr;
}
int convolution(algorithm what, float alpha, float beta) {
    const memory::dims sizes{1, kChannels, kSide, kSide};
    const memory::desc plain(sizes, dt::f32, tag::nchw), weights({kChannels, kChannels, 1, 1}, dt::f32, tag::oihw);
    const convolution_forward::primitive_desc pd(
        cpu, prop_kind::forward_inference, algorithm::convolution_direct, memory::desc(sizes, dt::f32, tag::any),
        memory::desc({kChannels, kChannels, 1, 1}, dt::f32, tag::any), memory::desc(sizes, dt::f32, tag::any), {1, 1}, {0, 0},
        {0, 0}, behind(what, alpha, beta));
    memory x = filled(plain, std::numeric_limits<float>::quiet_NaN()), w = filled(weights, 1.0f);
    memory inX(pd.src_desc(), cpu), inW(pd.weights_desc(), cpu), out(pd.dst_desc(), cpu);
    reorder(x, inX).execute(work, x, inX);
    reorder(w, inW).execute(work, w, inW);
    convolution_forward(pd).execute(work, {{DNNL_ARG_SRC, inX}, {DNNL_ARG_WEIGHTS, inW}, {DNNL_ARG_DST, out}});
    work.wait();
    return countNan(out, plain);
}
int product(algorithm what, float alpha, float beta) {
    const memory::desc a({4, kChannels}, dt::f32, tag::ab), b({kChannels, kChannels}, dt::f32, tag::ab);
    const matmul::primitive_desc pd(cpu, a, b, a, behind(what, alpha, beta));
    memory x = filled(a, std::numeric_limits<float>::quiet_NaN()), y = filled(b, 1.0f), out(a, cpu);
    matmul(pd).execute(work, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, y}, {DNNL_ARG_DST, out}});
    work.wait();
    return countNan(out, a);
}
int alone(algorithm what, float alpha, float beta) {
    const memory::desc plain({1, kChannels, kSide, kSide}, dt::f32, tag::nchw);
    const eltwise_forward::primitive_desc pd(cpu, prop_kind::forward_inference, what, plain, plain, alpha, beta);
    memory x = filled(plain, std::numeric_limits<float>::quiet_NaN()), out(plain, cpu);
    eltwise_forward(pd).execute(work, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, out}});
    work.wait();
    return countNan(out, plain);
}
int main() {
    const auto relu = algorithm::eltwise_relu, clip = algorithm::eltwise_clip, elu = algorithm::eltwise_elu;
    std::printf("NaN of 64: relu %d, relu with slope %d, clip %d, elu(0) %d, tanh %d; ", alone(relu, 0, 0), alone(relu, 0.01f, 0),
                alone(clip, 0, 6), alone(elu, 0, 0), alone(algorithm::eltwise_tanh, 0, 0));
    std::printf("behind a convolution: relu %d, relu with slope %d, clip %d, elu(0) %d; ", convolution(relu, 0, 0),
                convolution(relu, 0.01f, 0), convolution(clip, 0, 6), convolution(elu, 0, 0));
    std::printf("behind a matmul: relu %d, elu(0) %d\n", product(relu, 0, 0), product(elu, 0, 0));
}
CPP
g++ -std=c++17 -O1 -I"$work/venv/include" "$work/nan.cpp" -L"$work/venv/lib" -ldnnl -Wl,-rpath,"$work/venv/lib" -o "$work/nan"
seen=$("$work/nan")
echo "$seen"
[ "$seen" = "NaN of 64: relu 0, relu with slope 64, clip 0, elu(0) 64, tanh 64; behind a convolution: relu 0, relu with slope 64, clip 0, elu(0) 64; behind a matmul: relu 0, elu(0) 64" ]
