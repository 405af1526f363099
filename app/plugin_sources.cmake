# Writes the sample plugins as string literals: cmake -DSAMPLES=FOLDER -DOUTPUT=FILE -P plugin_sources.cmake
set(text "#pragma once\n// Written by plugin_sources.cmake.\n\nnamespace cutaway::cli {\n")
foreach(sample FuseAddcmul:fuse_addcmul.c DropDoubleNeg:drop_double_neg.py FuseSilu:fuse_silu.rules ImportOnnx:import_onnx.cpp
               ImportFx:import_fx.py AskProduct:ask_product.py AskSize:ask_size.c ColorFlop:color_flop.c
               ColorFamily:color_family.py JudgeCosine:judge_cosine.py BlasProduct:blas_product.c
               RunningSum:running_sum.py)
  string(REPLACE ":" ";" sample ${sample})
  list(GET sample 0 name)
  list(GET sample 1 file)
  file(READ ${SAMPLES}/${file} content)
  string(APPEND text "inline constexpr char k${name}[] = R\"sample(${content})sample\";\n")
endforeach()
string(APPEND text "}  // namespace cutaway::cli\n")
file(WRITE ${OUTPUT} "${text}")
