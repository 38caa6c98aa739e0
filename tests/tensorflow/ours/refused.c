// refused.c — What is refused with a status where TensorFlow's library ends the program, or goes on
// with what cannot be: definitions and kernels that do not fit, attributes of the wrong kind.
#include "../check.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

static void refuse(TF_Status* s, TF_Code code, const char* text) {
  if (TF_GetCode(s) != code || !strstr(TF_Message(s), text)) {
    printf("'%s' is wanted, but it is %d %s\n", text, TF_GetCode(s), TF_Message(s));
    exit(1);
  }
}

static TF_OpDefinitionBuilder* definition(const char* name, const char* attr, const char* input) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddAttr(op, attr);
  TF_OpDefinitionBuilderAddInput(op, input);
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  return op;
}

static void definitions(TF_Status* s) {
  TF_RegisterOpDefinition(definition("WeirTestBad", "T: typo", "x: T"), s);
  refuse(s, TF_INVALID_ARGUMENT, "WeirTestBad");
  TF_RegisterOpDefinition(definition("WeirTestBad", "T: type", "x: U"), s);
  refuse(s, TF_INVALID_ARGUMENT, "WeirTestBad");
  TF_RegisterOpDefinition(definition("no name", "T: type", "x: T"), s);
  refuse(s, TF_INVALID_ARGUMENT, "no name");
  TF_RegisterOpDefinition(definition("MatMul", "T: type", "x: T"), s);
  refuse(s, TF_INVALID_ARGUMENT, "taken");
  TF_RegisterOpDefinition(definition("WeirTestBad", "T: type", "x: T"), s);
  OK(s);
}

static void set_wrong(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  const int none[] = {7};
  TF_Status* s = TF_NewStatus();
  TF_AllocateOutput(ctx, 0, TF_INT64, NULL, 0, 8, s);
  refuse(s, TF_INVALID_ARGUMENT, "output 0");
  TF_AllocateOutput(ctx, 1, TF_FLOAT, NULL, 0, 4, s);
  refuse(s, TF_OUT_OF_RANGE, "output index 1");
  TF_ForwardInputOrAllocateOutput(ctx, none, 1, 0, NULL, 0, NULL, s);
  refuse(s, TF_OUT_OF_RANGE, "input index 7");
  TF_Tensor* wrong = int_scalar(3);
  TF_SetOutput(ctx, 0, wrong, s);
  refuse(s, TF_INVALID_ARGUMENT, "int32");
  TF_SetStatus(s, TF_DATA_LOSS, "the first");
  TF_OpKernelContext_Failure(ctx, s);
  TF_SetStatus(s, TF_ABORTED, "the second");
  TF_OpKernelContext_Failure(ctx, s);
  TF_DeleteTensor(wrong);
  TF_DeleteStatus(s);
}

static void kernels(TF_Status* s) {
  TF_KernelBuilder* kernel = TF_NewKernelBuilder("WeirTestBad", "CPU", NULL, set_wrong, NULL);
  TF_KernelBuilder_TypeConstraint(kernel, "U", TF_FLOAT, s);
  TF_RegisterKernelBuilder("bad", kernel, s);
  refuse(s, TF_INVALID_ARGUMENT, "'U'");
  kernel = TF_NewKernelBuilder("WeirTestBad", "CPU", NULL, set_wrong, NULL);
  TF_KernelBuilder_HostMemory(kernel, "z");
  TF_RegisterKernelBuilder("bad", kernel, s);
  refuse(s, TF_INVALID_ARGUMENT, "'z'");
  kernel = TF_NewKernelBuilder("WeirTestBad", "CPU", NULL, NULL, NULL);
  TF_RegisterKernelBuilder("bad", kernel, s);
  refuse(s, TF_INVALID_ARGUMENT, "function");
  TF_RegisterKernelBuilder("bad", TF_NewKernelBuilder("WeirTestBad", "CPU", NULL, set_wrong, NULL),
                           s);
  OK(s);
}

// What waits for an op is refused with that.
static void too_early(TF_Status* s) {
  TF_KernelBuilder* kernel = TF_NewKernelBuilder("WeirTestSoon", "CPU", NULL, set_wrong, NULL);
  TF_KernelBuilder_TypeConstraint(kernel, "U", TF_FLOAT, s);
  TF_RegisterKernelBuilder("early", kernel, s);
  OK(s);
  TF_RegisterOpDefinition(definition("WeirTestSoon", "T: type", "x: T"), s);
  refuse(s, TF_INVALID_ARGUMENT, "'U'");
}

static void attributes(TF_Graph* g, TF_Status* s, TF_Operation* x) {
  TF_Operation* op = binary(g, s, "MatMul", "product", out(x, 0), out(x, 0));
  TF_Buffer* text = TF_NewBufferFromString("\x12\x02hi", 4);  // AttrValue {s: "hi"}
  TF_Buffer* type = TF_NewBufferFromString("\x30\x02", 2);    // {type: DT_DOUBLE}
  TF_Buffer* none = TF_NewBufferFromString("\x12\x7f", 2);    // cut off
  TF_SetAttr(g, op, "transpose_b", text, s);
  refuse(s, TF_INVALID_ARGUMENT, "");
  TF_SetAttr(g, op, "T", type, s);
  refuse(s, TF_INVALID_ARGUMENT, "'T'");
  TF_SetAttr(g, op, "transpose_b", none, s);
  refuse(s, TF_INVALID_ARGUMENT, "transpose_b");
  TF_ClearAttr(g, op, "T", s);
  refuse(s, TF_INVALID_ARGUMENT, "'T'");
  TF_ClearAttr(g, x, "dtype", s);
  refuse(s, TF_INVALID_ARGUMENT, "dtype");
  TF_DeleteBuffer(text);
  TF_DeleteBuffer(type);
  TF_DeleteBuffer(none);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_Graph* g = TF_NewGraph();
  definitions(s);
  kernels(s);
  too_early(s);
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* op = unary(g, s, "WeirTestBad", "op", out(x, 0));
  OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  const TF_Output fed = out(x, 0);
  const TF_Output fetch = out(op, 0);
  TF_Tensor* value = float_scalar(1);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &fed, &value, 1, &fetch, &result, 1, NULL, 0, NULL, s);
  refuse(s, TF_DATA_LOSS, "the first");
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
  attributes(g, s, x);
  TF_DeleteGraph(g);
  TF_DeleteStatus(s);
  printf("all refused\n");
  return 0;
}
