// summarize.h — Tensors in the words of TensorFlow's Assert and Print: "[1 2][3...]...", unlike the
// nested form of tools.
#ifndef WEIR_OPS_STRING_SUMMARIZE_H_
#define WEIR_OPS_STRING_SUMMARIZE_H_

#include "base/string.h"
#include "tensor/tensor.h"

// Appends up to |limit| elements in all (less than 0: every one), without the outermost brackets.
void weir_tensor_summarize(const weir_tensor_t* tensor, int64_t limit, weir_strbuf_t* out);

#endif  // WEIR_OPS_STRING_SUMMARIZE_H_
