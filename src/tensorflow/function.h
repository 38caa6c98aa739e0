// function.h — TF_Function: a FunctionDef by itself, with those that it needs.
#ifndef WEIR_TENSORFLOW_FUNCTION_H_
#define WEIR_TENSORFLOW_FUNCTION_H_

#include "base/string.h"
#include "tensorflow/c/c_api.h"

struct TF_Function {
  char* name;         // owned
  weir_strbuf_t def;  // FunctionDef
  weir_strbuf_t kin;  // FunctionDefLibrary of the graph it comes from
};

// A function of this FunctionDef. |library| (may be empty): a FunctionDefLibrary it may need.
WEIR_MUST_USE weir_status_t* tf_function_create(weir_view_t def, weir_view_t library,
                                                TF_Function** out_function);

#endif  // WEIR_TENSORFLOW_FUNCTION_H_
