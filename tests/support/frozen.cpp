#include "tests/support/frozen.h"

#include <QFile>

namespace cutaway::testing {

const char* const kNormed = R"(def forward(
    w: "f32[4, 3, 3, 3]",  # ParamAOTInput(target='conv.weight')
    gamma: "f32[4]",  # ParamAOTInput(target='bn.weight')
    beta: "f32[4]",  # ParamAOTInput(target='bn.bias')
    mean: "f32[4]",  # BufferAOTInput(target='bn.running_mean')
    var: "f32[4]",  # BufferAOTInput(target='bn.running_var')
    x: "f32[2, 3, 6, 6]",  # PlainAOTInput(idx=0)
):
    c: "f32[2, 4, 4, 4]" = aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    v: "f32[4]" = aten.abs.default(var)
    a: "f32[4]" = aten.add.Tensor(v, 1e-05)
    s: "f32[4]" = aten.sqrt.default(a)
    r: "f32[4]" = aten.reciprocal.default(s)
    m2: "f32[4, 1]" = aten.unsqueeze.default(mean, -1)
    m3: "f32[4, 1, 1]" = aten.unsqueeze.default(m2, -1)
    r2: "f32[4, 1]" = aten.unsqueeze.default(r, -1)
    r3: "f32[4, 1, 1]" = aten.unsqueeze.default(r2, -1)
    d: "f32[2, 4, 4, 4]" = aten.sub.Tensor(c, m3)
    e: "f32[2, 4, 4, 4]" = aten.mul.Tensor(d, r3)
    g2: "f32[4, 1]" = aten.unsqueeze.default(gamma, -1)
    g3: "f32[4, 1, 1]" = aten.unsqueeze.default(g2, -1)
    f: "f32[2, 4, 4, 4]" = aten.mul.Tensor(e, g3)
    b2: "f32[4, 1]" = aten.unsqueeze.default(beta, -1)
    b3: "f32[4, 1, 1]" = aten.unsqueeze.default(b2, -1)
    y: "f32[2, 4, 4, 4]" = aten.add.Tensor(f, b3)
    return (y,)
)";

std::string written(const QTemporaryDir& folder, const char* name, const std::string& text) {
    const QString path = folder.filePath(name);
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text.data(), std::ssize(text)) != std::ssize(text))
        qFatal("cannot write %s", qPrintable(path));
    return path.toStdString();
}

double largestMagnitude(const Tensor& tensor) {
    double most = 0;
    const Tensor wide = tensor.to(DType::F64).contiguous();
    for (int64_t i = 0; i < wide.numel(); ++i) most = std::max(most, std::abs(wide.as<double>()[i]));
    return most;
}

}  // namespace cutaway::testing
