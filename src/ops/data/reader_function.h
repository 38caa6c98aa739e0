// reader_function.h — Whether a function reads files that its argument names.
#ifndef WEIR_OPS_DATA_READER_FUNCTION_H_
#define WEIR_OPS_DATA_READER_FUNCTION_H_

#include "op/kernel.h"

// Looks at the nodes of function |name|, and of functions that make datasets within it, for a
// reader of files whose names are what TensorFlow's client calls the first argument.
bool weir_reads_files(weir_functions_t* functions, weir_view_t name);

#endif  // WEIR_OPS_DATA_READER_FUNCTION_H_
