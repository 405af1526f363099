#include "engine/numerics/element_reader.h"

namespace cutaway {

ElementReader::ElementReader(const Tensor& tensor, int64_t first) : m_tensor(tensor) {
    m_total = tensor.numel() * width(tensor.dtype());
    if (tensor.isContiguous()) {
        m_run = tensor.numel();
        m_at = first / width(tensor.dtype());
        return;
    }
    m_run = tensor.sizes().back();
    m_step = tensor.strides().back();
    m_index.assign(tensor.sizes().size() - 1, 0);
    int64_t left = first / width(tensor.dtype());
    m_at = left % m_run;
    left /= m_run;
    for (size_t d = m_index.size(); d-- > 0; left /= tensor.sizes()[d]) m_index[d] = left % tensor.sizes()[d];
}

void ElementReader::read(int64_t count, double* out) {
    const DType dtype = m_tensor.dtype();
    const int wide = width(dtype);
    for (int64_t left = count / wide; left > 0;) {
        int64_t offset = 0;
        for (size_t d = 0; d < m_index.size(); ++d) offset += m_index[d] * m_tensor.strides()[d];
        const int64_t now = std::min(left, m_run - m_at);
        const auto* from = static_cast<const std::byte*>(m_tensor.data()) + (offset + m_at * m_step) * byteSize(dtype);
        if (wide == 2) loadElements(dtype, from, m_step, now, reinterpret_cast<std::complex<double>*>(out));
        else loadElements(dtype, from, m_step, now, out);
        out += now * wide;
        left -= now;
        m_at += now;
        if (m_at < m_run) continue;
        m_at = 0;
        for (size_t d = m_index.size(); d-- > 0;) {
            if (++m_index[d] < m_tensor.sizes()[d]) break;
            m_index[d] = 0;
        }
    }
}

}  // namespace cutaway
