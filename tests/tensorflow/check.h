// check.h — What the C API's test programs share. They print what they see: the same program, run
// on TensorFlow's library and on ours, must print the same.
#ifndef WEIR_TESTS_TENSORFLOW_CHECK_H_
#define WEIR_TESTS_TENSORFLOW_CHECK_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

// Prints what a call made of |s| under |what|: the code, and the text if |with_text|.
static inline void say(const char* what, TF_Status* s, int with_text) {
  printf("%s: %d%s%s\n", what, TF_GetCode(s), with_text ? " " : "", with_text ? TF_Message(s) : "");
}
// Ends the program, naming the line, when |s| is not OK.
#define OK(s)                                                             \
  do {                                                                    \
    if (TF_GetCode(s) != TF_OK) {                                         \
      printf("line %d: %d %s\n", __LINE__, TF_GetCode(s), TF_Message(s)); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

static inline TF_Tensor* tensor_of(TF_DataType type, const int64_t* dims, int rank,
                                   const void* data, size_t size) {
  TF_Tensor* t = TF_AllocateTensor(type, dims, rank, size);
  memcpy(TF_TensorData(t), data, size);
  return t;
}
static inline TF_Tensor* float_scalar(float value) {
  return tensor_of(TF_FLOAT, NULL, 0, &value, sizeof(value));
}
static inline TF_Tensor* int_scalar(int32_t value) {
  return tensor_of(TF_INT32, NULL, 0, &value, sizeof(value));
}

static inline TF_Output out(TF_Operation* op, int index) {
  TF_Output output = {op, index};
  return output;
}

static inline TF_Operation* placeholder(TF_Graph* g, TF_Status* s, const char* name,
                                        TF_DataType type) {
  TF_OperationDescription* desc = TF_NewOperation(g, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", type);
  return TF_FinishOperation(desc, s);
}
// Consumes |value|.
static inline TF_Operation* constant(TF_Graph* g, TF_Status* s, const char* name,
                                     TF_Tensor* value) {
  TF_OperationDescription* desc = TF_NewOperation(g, "Const", name);
  TF_SetAttrTensor(desc, "value", value, s);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  TF_DeleteTensor(value);
  return TF_FinishOperation(desc, s);
}
static inline TF_Operation* binary(TF_Graph* g, TF_Status* s, const char* op, const char* name,
                                   TF_Output a, TF_Output b) {
  TF_OperationDescription* desc = TF_NewOperation(g, op, name);
  TF_AddInput(desc, a);
  TF_AddInput(desc, b);
  return TF_FinishOperation(desc, s);
}
static inline TF_Operation* unary(TF_Graph* g, TF_Status* s, const char* op, const char* name,
                                  TF_Output a) {
  TF_OperationDescription* desc = TF_NewOperation(g, op, name);
  TF_AddInput(desc, a);
  return TF_FinishOperation(desc, s);
}

static inline void print_floats(const char* what, TF_Tensor* t) {
  printf("%s:", what);
  for (int64_t i = 0; i < TF_TensorElementCount(t); ++i)
    printf(" %g", ((const float*)TF_TensorData(t))[i]);
  printf("\n");
}

#endif  // WEIR_TESTS_TENSORFLOW_CHECK_H_
