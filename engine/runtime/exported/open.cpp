#include "engine/runtime/exported/open.h"

#include <stdexcept>

#include "engine/runtime/exported/guarded.h"
#include "engine/runtime/exported/host_support.h"
#include "engine/runtime/exported/manifest.h"
#include "engine/runtime/exported/processor_needs.h"
#include "engine/runtime/exported/tensor_file.h"
#include "engine/support/threads.h"

struct CtTensorFile {
    ct::TensorFile file;
};

namespace ct {

CtProgram* open(const Library& library, const char* weights) {
    const Code& code = *library.code;
    return guarded<CtProgram*>(nullptr, lastFailure(), [&]() -> CtProgram* {
        if (const std::string lacking = lackingOf(library.needs); !lacking.empty())
            throw std::runtime_error("this processor has no " + lacking +
                                     ", which the program was compiled for (target " + library.target +
                                     "): build its folder with other options of the kernels, or export it for another "
                                     "target");
        const char* const begin = library.weights;
        if (weights == nullptr && begin == library.weightsEnd) return create(code, library.host, nullptr);
        const auto file = weights != nullptr
                              ? std::make_shared<TensorFile>(weights)
                              : std::make_shared<TensorFile>("the library's weights", begin,
                                                             static_cast<size_t>(library.weightsEnd - begin));
        if (weights != nullptr) checkBytes(weights, file->bytes(), file->size());
        std::vector<CtTensor> constants;
        for (int32_t i = 0; i < code.info->constantCount; ++i) {
            const char* const name = code.info->constants[i].name;
            const CtTensor* const found = file->find(name);
            if (found == nullptr) throw std::runtime_error(file->path() + " has no tensor '" + name + "'");
            constants.push_back(*found);
        }
        return create(code, library.host, constants.data(), file);
    });
}

CtParallel parallel(int32_t threads) {
    const auto run = [](const CtParallel* self, int64_t range, int64_t unit, void (*body)(void*, int64_t, int64_t),
                        void* state) {
        cutaway::runRange(range, unit, self->threads, [&](int64_t begin, int64_t end) { body(state, begin, end); });
    };
    return {nullptr, threads > 0 ? threads : cutaway::threadCount(), run, nullptr, nullptr};
}

CtTensorFile* readFile(const char* path) {
    return guarded<CtTensorFile*>(nullptr, lastFailure(), [&] { return new CtTensorFile{TensorFile(path)}; });
}
int32_t fileCount(const CtTensorFile* file) { return static_cast<int32_t>(file->file.count()); }
const char* fileName(const CtTensorFile* file, int32_t number) {
    return file->file.name(static_cast<size_t>(number)).c_str();
}
const CtTensor* fileTensor(const CtTensorFile* file, const char* name) {
    return guarded<const CtTensor*>(nullptr, lastFailure(), [&] { return file->file.find(name); });
}
void closeFile(CtTensorFile* file) { delete file; }
int32_t writeFile(const char* path, const char* const* names, const CtTensor* tensors, int32_t count) {
    return guarded<int32_t>(1, lastFailure(), [&] {
        writeTensorFile(path, names, tensors, count);
        return 0;
    });
}

}  // namespace ct
