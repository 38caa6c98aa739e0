// changes.c — Operations changed after they were added; a session then runs what they have become.
#include "check.h"

static void run(TF_Graph* g, TF_Status* s, const char* what, TF_Operation* op) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  OK(s);
  const TF_Output fetch = out(op, 0);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL, s);
  say(what, s, 0);
  if (TF_GetCode(s) == TF_OK) print_floats(what, result);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
}

static void edges(TF_Graph* g, TF_Status* s) {
  const float pair[] = {1, 2};
  const int64_t dims[] = {2};
  TF_Operation* a = constant(g, s, "a", float_scalar(1));
  TF_Operation* b = constant(g, s, "b", float_scalar(20));
  TF_Operation* two = constant(g, s, "two", tensor_of(TF_FLOAT, dims, 1, pair, sizeof(pair)));
  TF_Operation* neg = unary(g, s, "Neg", "neg", out(a, 0));
  TF_Operation* sum = binary(g, s, "AddV2", "sum", out(neg, 0), out(a, 0));
  OK(s);
  const TF_Input second = {sum, 1};
  TF_UpdateEdge(g, out(b, 0), second, s);
  say("update", s, 0);
  printf("reads %s, a has %d readers\n", TF_OperationName(TF_OperationInput(second).oper),
         TF_OperationOutputNumConsumers(out(a, 0)));
  run(g, s, "sum", sum);
  TF_UpdateEdge(g, out(b, 3), second, s);
  say("no such output", s, 0);
  const TF_Input fifth = {sum, 5};
  TF_UpdateEdge(g, out(b, 0), fifth, s);
  say("no such input", s, 0);
  const TF_Input first = {neg, 0};
  TF_UpdateEdge(g, out(two, 0), first, s);
  say("another shape", s, 0);
}

static void controls(TF_Graph* g, TF_Status* s) {
  TF_Operation* a = constant(g, s, "ordered", float_scalar(1));
  TF_Operation* first = TF_FinishOperation(TF_NewOperation(g, "NoOp", "first"), s);
  TF_Operation* second = TF_FinishOperation(TF_NewOperation(g, "NoOp", "second"), s);
  TF_Operation* op = unary(g, s, "Neg", "after", out(a, 0));
  OK(s);
  TF_AddOperationControlInput(g, op, first);
  TF_AddOperationControlInput(g, op, second);
  TF_Operation* found[4] = {NULL};
  printf("controls %d", TF_OperationNumControlInputs(op));
  printf(" %d", TF_OperationGetControlInputs(op, found, 4));
  printf(" of first %d\n", TF_OperationNumControlOutputs(first));
  run(g, s, "after", op);
  TF_RemoveAllControlInputs(g, op);
  printf("controls %d of first %d\n", TF_OperationNumControlInputs(op),
         TF_OperationNumControlOutputs(first));
  TF_SetRequestedDevice(g, op, "/device:CPU:0");
  printf("device %s\n", TF_OperationDevice(op));
  run(g, s, "placed", op);
}

static void attributes(TF_Graph* g, TF_Status* s) {
  const float values[] = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  TF_Operation* m = constant(g, s, "matrix", tensor_of(TF_FLOAT, dims, 2, values, sizeof(values)));
  TF_Operation* op = binary(g, s, "MatMul", "product", out(m, 0), out(m, 0));
  OK(s);
  TF_Buffer* yes = TF_NewBufferFromString("\x28\x01", 2);     // AttrValue {b: true}
  TF_Buffer* text = TF_NewBufferFromString("\x12\x02hi", 4);  // {s: "hi"}
  TF_SetAttr(g, op, "transpose_b", yes, s);
  say("set", s, 0);
  unsigned char value = 0;
  TF_OperationGetAttrBool(op, "transpose_b", &value, s);
  printf("transposed %d\n", value);
  run(g, s, "transposed", op);
  TF_SetAttr(g, op, "_note", text, s);
  say("a note", s, 0);
  char note[3] = "";
  TF_OperationGetAttrString(op, "_note", note, 2, s);
  printf("note %s\n", note);
  TF_ClearAttr(g, op, "_note", s);
  say("cleared", s, 0);
  TF_OperationGetAttrMetadata(op, "_note", s);
  say("gone", s, 0);
  TF_SetStatus(s, TF_OK, "");
  TF_ClearAttr(g, op, "_never_was", s);
  say("never was", s, 0);
  TF_DeleteBuffer(yes);
  TF_DeleteBuffer(text);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_Graph* g = TF_NewGraph();
  edges(g, s);
  controls(g, s);
  attributes(g, s);
  TF_DeleteGraph(g);
  TF_DeleteStatus(s);
  return 0;
}
