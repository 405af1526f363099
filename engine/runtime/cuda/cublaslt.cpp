#include "engine/runtime/cuda/cublaslt.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/libraries/choose.h"
#include "engine/runtime/cuda/candidates.h"
#include "engine/runtime/cuda/memory.h"
#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/library_plan.h"
#include "engine/tensor/dtype.h"

namespace cutaway {
namespace {

// Values of cuBLASLt's public enumerations.
constexpr int kComputeFloat = 68, kComputeDouble = 70, kComputeTf32 = 77;
constexpr int kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8, kEpilogueBias = 4;
constexpr int kBatchCount = 5, kBatchStride = 6;
constexpr int kMaxWorkspace = 1, kMinAlignmentA = 5;  // B, C and D follow
/// Workspace of a call, as PyTorch gives it on recent devices.
constexpr size_t kWorkspace = size_t{32} << 20;
constexpr size_t kBestAlignment = 256;

struct Types {
    int data, compute, scale;
};
Types typesOf(DType dtype) {
    switch (dtype) {
        case DType::F32: return {0, kComputeFloat, 0};
        case DType::F64: return {1, kComputeDouble, 1};
        case DType::F16: return {2, kComputeFloat, 0};
        case DType::BF16: return {14, kComputeFloat, 0};
        default: throw LibraryRefusal("it multiplies f64, f32, f16 and bf16");
    }
}

/// A matrix of rows by columns, or several of them, in elements.
struct Matrix {
    int64_t rows = 1, columns = 1, rowStep = 1, columnStep = 1, batch = 1, batchStep = 0;

    Matrix() = default;
    explicit Matrix(const CtTensor& tensor) {
        if (tensor.rank < 2 || tensor.rank > 3) throw LibraryRefusal("it multiplies matrices, alone or in a batch");
        const int last = tensor.rank - 1;
        rows = tensor.sizes[last - 1];
        columns = tensor.sizes[last];
        rowStep = tensor.strides[last - 1];
        columnStep = tensor.strides[last];
        if (tensor.rank == 3) {
            batch = tensor.sizes[0];
            batchStep = tensor.strides[0];
        }
    }
    Matrix turned() const {
        Matrix other = *this;
        std::swap(other.rows, other.columns);
        std::swap(other.rowStep, other.columnStep);
        return other;
    }
    /// The distance of columns where they lie dense, column after column; none where they do not.
    std::optional<int64_t> lead() const {
        if (rowStep != 1 && rows != 1) return std::nullopt;
        if (columns == 1) return std::max<int64_t>(rows, 1);
        return columnStep >= rows ? std::optional(columnStep) : std::nullopt;
    }
};

void check(int status, const char* call) {
    if (status != 0) throw LibraryRefusal(std::string(call) + " failed with status " + std::to_string(status));
}

/// The process's handle.
struct LtHandle {
    const cuda::CublasLt* lt = nullptr;
    void* handle = nullptr;
};
const LtHandle& opened() {
    static const LtHandle handle = [] {
        auto memory = cuda::Memory::ofProcess();
        if (!memory) throw LibraryRefusal(memory.error().message);
        auto lt = (*memory)->products();
        if (!lt) throw LibraryRefusal(lt.error().message);
        LtHandle made{*lt, nullptr};
        check(made.lt->create(&made.handle), "cublasLtCreate");
        return made;
    }();
    return handle;
}

/// An operand as cuBLASLt walks it: column-major, as it is or turned.
struct OperandLayout {
    void* layout = nullptr;
    bool turned = false;
};

class ProductPlan final : public LibraryPlan {
  public:
    ProductPlan(const CtCall& call, CtNeeds& needs) : m_reader(call) {
        const bool batched = m_reader.find("batch1") != nullptr, plain = m_reader.find("beta") == nullptr;
        m_a = m_reader.operand(batched ? "batch1" : plain ? "self" : "mat1").value();
        m_b = m_reader.operand(batched ? "batch2" : "mat2").value();
        const CtTensor& out = call.results[0];
        m_dtype = static_cast<DType>(out.dtype);
        m_types = typesOf(static_cast<DType>(call.operands[m_a].dtype));
        m_outType = typesOf(m_dtype).data;
        if (m_reader.flag(kAllowTf32)) m_types.compute = kComputeTf32;
        m_measures = m_reader.flag(kMeasure);
        Matrix a(call.operands[m_a]), b(call.operands[m_b]), d(out);
        m_empty = d.rows == 0 || d.columns == 0 || d.batch == 0;
        if (!m_empty && a.columns == 0) throw LibraryRefusal("a sum of nothing is not a product");
        if (!plain) {
            m_alpha = m_reader.real("alpha").value_or(1);
            m_beta = m_reader.real("beta").value_or(1);
        }
        std::optional<Matrix> c;
        if (!plain && m_beta != 0) c = addend(call, d);
        // The library's results are column-major; a row-major one is the turned product's.
        const bool turned = !d.lead() || (d.turned().lead() && d.columnStep == 1 && d.columns > 1);
        if (turned) {
            std::swap(a, b);
            std::swap(m_a, m_b);
            a = a.turned();
            b = b.turned();
            d = d.turned();
            if (c) c = c->turned();
        }
        if (m_bias && m_biasByRow == turned) throw LibraryRefusal("it adds one number for each column");
        if (m_empty) return;
        const LtHandle& handle = opened();
        check(handle.lt->matmulDescCreate(&m_product, m_types.compute, m_types.scale), "cublasLtMatmulDescCreate");
        m_left = seen(a, kTransA);
        m_right = seen(b, kTransB);
        m_out = layout(d, d.lead(), m_outType);
        if (c && !c->lead()) throw LibraryRefusal("what is added lies in another order than the result");
        m_added = c ? layout(*c, c->lead(), m_outType) : m_out;
        if (m_bias) set(kEpilogue, kEpilogueBias);
        m_text += std::to_string(m_types.compute) + (m_bias ? " bias" : "");
        needs.scratch = kWorkspace + kBestAlignment;
    }

    ~ProductPlan() override {
        if (m_product == nullptr) return;
        const cuda::CublasLt& lt = *opened().lt;
        for (void* const made : m_layouts) lt.matrixLayoutDestroy(made);
        lt.matmulDescDestroy(m_product);
    }

    void run(const LibraryRun& given) const override {
        if (m_empty) return;
        const LtHandle& handle = opened();
        const auto at = [&](int operand) { return given.operands[operand].data; };
        void* const out = given.results[0].data;
        const void* const added = m_c ? at(*m_c) : out;
        // The descriptor holds the bias's address, and found algorithms are shared.
        const std::lock_guard lock(m_mutex);
        if (m_bias) {
            const void* const bias = at(*m_bias);
            set(kBiasPointer, bias);
        }
        const float alpha = static_cast<float>(m_alpha), beta = m_c ? static_cast<float>(m_beta) : 0.f;
        const double alphaDouble = m_alpha, betaDouble = m_c ? m_beta : 0.;
        const bool wide = m_dtype == DType::F64;
        const auto scratch = reinterpret_cast<uintptr_t>(given.scratch);
        auto* const workspace =
            reinterpret_cast<void*>((scratch + kBestAlignment - 1) / kBestAlignment * kBestAlignment);
        const auto multiply = [&](const cuda::MatmulAlgo& algo) {
            return handle.lt->matmul(handle.handle, m_product, wide ? static_cast<const void*>(&alphaDouble) : &alpha,
                                     at(m_a), m_left.layout, at(m_b), m_right.layout,
                                     wide ? static_cast<const void*>(&betaDouble) : &beta, added, m_added, out, m_out,
                                     &algo, workspace, kWorkspace, static_cast<cuda::Stream*>(given.parallel->stream));
        };
        // A product added to what it overwrites is another one when it runs again.
        const bool measures = m_measures && !(m_c && added == out);
        check(multiply(algorithmFor({at(m_a), at(m_b), added, out}, measures ? multiply : Multiply())),
              "cublasLtMatmul");
    }

  private:
    using Multiply = std::function<int(const cuda::MatmulAlgo&)>;
    template <class T>
    void set(int attribute, const T& value) const {
        check(opened().lt->matmulDescSetAttribute(m_product, attribute, &value, sizeof value),
              "cublasLtMatmulDescSetAttribute");
    }
    void* layout(const Matrix& matrix, std::optional<int64_t> lead, int type) {
        const cuda::CublasLt& lt = *opened().lt;
        void* made = nullptr;
        check(lt.matrixLayoutCreate(&made, type, static_cast<uint64_t>(matrix.rows),
                                    static_cast<uint64_t>(matrix.columns), *lead),
              "cublasLtMatrixLayoutCreate");
        m_layouts.push_back(made);
        for (const int64_t number : {int64_t{type}, matrix.rows, matrix.columns, *lead, matrix.batch, matrix.batchStep})
            m_text += std::to_string(number) + " ";
        if (matrix.batch > 1) {
            const auto count = static_cast<int32_t>(matrix.batch);
            check(lt.matrixLayoutSetAttribute(made, kBatchCount, &count, sizeof count),
                  "cublasLtMatrixLayoutSetAttribute");
            check(lt.matrixLayoutSetAttribute(made, kBatchStride, &matrix.batchStep, sizeof matrix.batchStep),
                  "cublasLtMatrixLayoutSetAttribute");
        }
        return made;
    }
    OperandLayout seen(const Matrix& matrix, int attribute) {
        if (const auto lead = matrix.lead()) return {layout(matrix, lead, m_types.data), false};
        const Matrix turned = matrix.turned();
        const auto lead = turned.lead();
        if (!lead) throw LibraryRefusal("neither rows nor columns of an operand are dense");
        constexpr int kTransposed = 1;
        set(attribute, kTransposed);
        m_text += "transposed ";
        return {layout(turned, lead, m_types.data), true};
    }
    /// What is added: a matrix of the result's sizes, or none where it is one number for each column or row.
    std::optional<Matrix> addend(const CtCall& call, const Matrix& out) {
        const int number = m_reader.operand("self").value();
        const CtTensor& self = call.operands[number];
        const auto fromBack = [&](int d, const int64_t* of, int64_t missing) {
            return self.rank > d ? of[self.rank - 1 - d] : missing;
        };
        const int64_t columns = fromBack(0, self.sizes, 1), rows = fromBack(1, self.sizes, 1),
                      batch = fromBack(2, self.sizes, 1);
        const int64_t columnStep = fromBack(0, self.strides, 0), rowStep = fromBack(1, self.strides, 0);
        const bool oneForColumn = rows == 1 || rowStep == 0, oneForRow = columns == 1 || columnStep == 0;
        const bool once = batch == 1 || fromBack(2, self.strides, 0) == 0;
        if (m_beta == 1 && once && oneForColumn && columns == out.columns && columnStep == 1) {
            m_bias = number;
            m_biasByRow = false;
            return std::nullopt;
        }
        if (m_beta == 1 && once && oneForRow && rows == out.rows && rowStep == 1) {
            m_bias = number;
            m_biasByRow = true;
            return std::nullopt;
        }
        if (rows != out.rows || columns != out.columns || (oneForColumn && rows > 1) || (oneForRow && columns > 1))
            throw LibraryRefusal("what it adds is a row or has the result's sizes");
        Matrix added = out;
        added.rowStep = rowStep;
        added.columnStep = columnStep;
        added.batchStep = batch == out.batch ? fromBack(2, self.strides, 0) : 0;
        m_c = number;
        return added;
    }
    /// For addresses that are multiples of the same powers of two: the heuristic's first, or the fastest by `multiply`
    /// where it is given and can be timed now.
    const cuda::MatmulAlgo& algorithmFor(const std::array<const void*, 4>& places, const Multiply& multiply) const {
        std::array<uint32_t, 4> alignments{};
        for (size_t i = 0; i < places.size(); ++i) {
            const auto at = reinterpret_cast<uintptr_t>(places[i]);
            alignments[i] = static_cast<uint32_t>(std::min<uintptr_t>(at & (~at + 1), kBestAlignment));
        }
        if (const auto it = m_algorithms.find(alignments); it != m_algorithms.end()) return it->second;
        const LtHandle& handle = opened();
        void* preference = nullptr;
        check(handle.lt->matmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
        const uint64_t workspace = kWorkspace;
        check(handle.lt->matmulPreferenceSetAttribute(preference, kMaxWorkspace, &workspace, sizeof workspace),
              "cublasLtMatmulPreferenceSetAttribute");
        for (size_t i = 0; i < alignments.size(); ++i)
            check(handle.lt->matmulPreferenceSetAttribute(preference, kMinAlignmentA + static_cast<int>(i),
                                                          &alignments[i], sizeof alignments[i]),
                  "cublasLtMatmulPreferenceSetAttribute");
        const bool measures = multiply && !cuda::isRecording();
        std::array<cuda::MatmulHeuristic, cuda::kMostCandidates> found{};
        int count = 0;
        check(handle.lt->matmulAlgoGetHeuristic(handle.handle, m_product, m_left.layout, m_right.layout, m_added, m_out,
                                                preference, measures ? cuda::kMostCandidates : 1, found.data(), &count),
              "cublasLtMatmulAlgoGetHeuristic");
        handle.lt->matmulPreferenceDestroy(preference);
        if (count == 0) throw LibraryRefusal("it has no algorithm for this product");
        if (!measures) return m_algorithms.emplace(alignments, found[0].algo).first->second;
        const auto isValid = [&](const cuda::MatmulAlgo& algo) {
            cuda::MatmulHeuristic about{};
            return handle.lt->matmulAlgoCheck(handle.handle, m_product, m_left.layout, m_right.layout, m_added, m_out,
                                              &algo, &about) == 0 &&
                   about.workspace <= kWorkspace;
        };
        std::string product = m_text;
        for (const uint32_t alignment : alignments) product += " " + std::to_string(alignment);
        const auto algo =
            cuda::chooseCandidate(product, std::span(found).first(static_cast<size_t>(count)), isValid, multiply);
        return m_algorithms.emplace(alignments, algo).first->second;
    }

    CallReader m_reader;
    int m_a = 0, m_b = 0;
    DType m_dtype = DType::F32;
    Types m_types{};    // of the operands
    int m_outType = 0;  // a product of halves may be f32
    double m_alpha = 1, m_beta = 1;
    std::optional<int> m_c, m_bias;
    bool m_biasByRow = false, m_empty = false, m_measures = false;
    std::string m_text;  // all that says which product it is but for alignments
    void *m_product = nullptr, *m_out = nullptr, *m_added = nullptr;
    OperandLayout m_left, m_right;
    std::vector<void*> m_layouts;
    mutable std::mutex m_mutex;
    mutable std::map<std::array<uint32_t, 4>, cuda::MatmulAlgo> m_algorithms;  // by alignments
};

std::unique_ptr<LibraryPlan> planCublasLt(const CtCall& call, int, CtNeeds& needs) {
    return std::make_unique<ProductPlan>(call, needs);
}

}  // namespace

const CtLibrary& cublasLtLibrary() {
    static const CtLibrary library = makeLibrary<planCublasLt>("cuBLASLt");
    return library;
}

}  // namespace cutaway
