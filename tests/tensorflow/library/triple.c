// triple.c — A library that brings an op and its kernel as it is loaded.
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

static void unchanged(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

static void triple(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(ctx, 0, &x, s);
  TF_Tensor* y = TF_AllocateOutput(ctx, 0, TF_FLOAT, NULL, 0, sizeof(float), s);
  *(float*)TF_TensorData(y) = *(const float*)TF_TensorData(x) * 3;
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}

__attribute__((constructor)) static void bring(void) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("WeirTestTriple");
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, unchanged);
  TF_RegisterOpDefinition(op, s);
  TF_RegisterKernelBuilder("triple",
                           TF_NewKernelBuilder("WeirTestTriple", "CPU", NULL, triple, NULL), s);
  TF_DeleteStatus(s);
}
