// later.c — A kernel that returns long before it is through, and whose end comes from the thread
// that runs another step. With TensorFlow's library the callback would be gone by then.
#include <pthread.h>

#include "../check.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

typedef struct waiting_t {
  TF_OpKernelContext* ctx;
  TF_AsyncOpKernelDoneCallback* done;
} waiting_t;

// The kernel that waits for another, guarded by |mu|.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static waiting_t waiting;

static void end(waiting_t one, float value) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* y = TF_AllocateOutput(one.ctx, 0, TF_FLOAT, NULL, 0, sizeof(value), s);
  OK(s);
  *(float*)TF_TensorData(y) = value;
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
  TF_RunAsyncOpKernelDoneCallback(one.done);
}

static float value_of(TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(ctx, 0, &x, s);
  OK(s);
  const float value = *(const float*)TF_TensorData(x);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
  return value;
}

// The first waits; the second gives both the sum.
static void meet(void* kernel, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
  (void)kernel;
  const waiting_t own = {ctx, done};
  pthread_mutex_lock(&mu);
  const waiting_t other = waiting;
  waiting = other.ctx ? (waiting_t){0} : own;
  pthread_mutex_unlock(&mu);
  if (!other.ctx) return;
  const float sum = value_of(ctx) + value_of(other.ctx);
  end(other, sum);
  end(own, sum);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* def = TF_NewOpDefinitionBuilder("WeirTestMeet");
  TF_OpDefinitionBuilderAddInput(def, "x: float");
  TF_OpDefinitionBuilderAddOutput(def, "y: float");
  TF_OpDefinitionBuilderSetIsStateful(def, true);
  TF_RegisterOpDefinition(def, s);
  OK(s);
  TF_RegisterKernelBuilder("meet",
                           TF_NewAsyncKernelBuilder("WeirTestMeet", "CPU", NULL, meet, NULL), s);
  OK(s);
  TF_Graph* g = TF_NewGraph();
  const TF_Output outputs[] = {
      out(unary(g, s, "WeirTestMeet", "one", out(constant(g, s, "a", float_scalar(40)), 0)), 0),
      out(unary(g, s, "WeirTestMeet", "two", out(constant(g, s, "b", float_scalar(2)), 0)), 0)};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  OK(s);
  TF_Tensor* results[2] = {NULL};
  TF_SessionRun(session, NULL, NULL, NULL, 0, outputs, results, 2, NULL, 0, NULL, s);
  OK(s);
  for (int i = 0; i < 2; ++i) {
    print_floats("met", results[i]);
    TF_DeleteTensor(results[i]);
  }
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(g);
  TF_DeleteStatus(s);
  return 0;
}
