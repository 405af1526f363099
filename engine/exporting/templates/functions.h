
#ifndef CUTAWAY_EXPORTED_@NAME@_H
#define CUTAWAY_EXPORTED_@NAME@_H
#ifdef __cplusplus
extern "C" {
#endif

/* What the program takes and gives: constants are what weights.safetensors holds. */
const CtProgramInfo* @NAME@_info(void);
/* The program with the weights of that file, which it maps. Null: @NAME@_error() says why. */
CtProgram* @NAME@_open(const char* weights);
/* After its last context. */
void @NAME@_close(CtProgram* program);
/* Why the last function of this thread that gives null, or other than 0, did so; @NAME@_run has its own. */
const char* @NAME@_error(void);

/* Threads to run on: so many, or 0 for one per core. They are those of GCC's OpenMP runtime, which wait for work by
   spinning: where other programs need the cores, start the process with OMP_WAIT_POLICY=passive. */
CtParallel @NAME@_parallel(int32_t threads);
/* Memory for one run at a time. `parallel` null: the calling thread does all. Null: @NAME@_error(). */
CtContext* @NAME@_context(CtProgram* program, const CtParallel* parallel);
void @NAME@_release(CtContext* context);
/* 0 on success, else @NAME@_context_error() says what happened, and where. `inputs` in the order of info->inputs, of any
   strides; the graph may write to one whose strides are info's. Outputs point into the context's memory, or into an
   input's, until the next run; a returned None has rank -1. */
int32_t @NAME@_run(CtContext* context, const CtTensor* inputs, CtTensor* outputs);
const char* @NAME@_context_error(const CtContext* context);

/* safetensors files. Tensors live as long as the file is open; null: @NAME@_error(), or no tensor of that name. */
typedef struct CtTensorFile CtTensorFile;
CtTensorFile* @NAME@_read(const char* path);
int32_t @NAME@_file_count(const CtTensorFile* file);
const char* @NAME@_file_name(const CtTensorFile* file, int32_t number);
const CtTensor* @NAME@_file_tensor(const CtTensorFile* file, const char* name);
void @NAME@_file_close(CtTensorFile* file);
/* 0 on success. */
int32_t @NAME@_write(const char* path, const char* const* names, const CtTensor* tensors, int32_t count);

#ifdef __cplusplus
}
#endif
#endif
