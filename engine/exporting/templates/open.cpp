extern "C" {
extern const ct::Code* @NAME@_code(void);
CT_EXPORTED CtProgram* @NAME@_open(const char* weights) { return ct::open(*@NAME@_code(), kHost, weights); }
CT_EXPORTED CtParallel @NAME@_parallel(int32_t threads) { return ct::parallel(threads); }
CT_EXPORTED CtTensorFile* @NAME@_read(const char* path) { return ct::readFile(path); }
CT_EXPORTED int32_t @NAME@_file_count(const CtTensorFile* file) { return ct::fileCount(file); }
CT_EXPORTED const char* @NAME@_file_name(const CtTensorFile* file, int32_t number) {
    return ct::fileName(file, number);
}
CT_EXPORTED const CtTensor* @NAME@_file_tensor(const CtTensorFile* file, const char* name) {
    return ct::fileTensor(file, name);
}
CT_EXPORTED void @NAME@_file_close(CtTensorFile* file) { ct::closeFile(file); }
CT_EXPORTED int32_t @NAME@_write(const char* path, const char* const* names, const CtTensor* tensors, int32_t count) {
    return ct::writeFile(path, names, tensors, count);
}
}
