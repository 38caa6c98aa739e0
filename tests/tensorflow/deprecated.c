// deprecated.c — Sessions of before 1.0, told of a graph by GraphDefs and of nodes by name.
#include "check.h"

// The GraphDef of x and y = -x, or of what is added to it: z = y + y.
static TF_Buffer* graph_def(TF_Status* s, int is_second) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, is_second ? "unused" : "x", TF_FLOAT);
  TF_Operation* y = unary(g, s, "Neg", is_second ? "other" : "y", out(x, 0));
  binary(g, s, "AddV2", is_second ? "sum" : "twice", out(y, 0), out(y, 0));
  OK(s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  TF_DeleteGraph(g);
  return def;
}

static void extend(TF_DeprecatedSession* session, const char* what, TF_Buffer* def, TF_Status* s) {
  TF_ExtendGraph(session, def->data, def->length, s);
  say(what, s, 0);
  TF_DeleteBuffer(def);
}

static void run(TF_DeprecatedSession* session, const char* in, const char* fetch,
                const char* target, TF_Status* s) {
  TF_Tensor* fed = float_scalar(3);
  TF_Tensor* result = NULL;
  TF_Run(session, NULL, &in, &fed, 1, &fetch, &result, 1, &target, target ? 1 : 0, NULL, s);
  say(fetch, s, 0);
  if (result) print_floats(fetch, result);
  TF_DeleteTensor(result);
  TF_DeleteTensor(fed);
}

static void in_parts(TF_DeprecatedSession* session, TF_Status* s) {
  const char* ins[] = {"x", "unused"};
  const char* outs[] = {"y", "sum"};
  const char* handle = NULL;
  TF_PRunSetup(session, ins, 2, outs, 2, NULL, 0, &handle, s);
  say("in parts", s, 0);
  for (int i = 0; i < 2; ++i) {
    TF_Tensor* fed = float_scalar((float)i + 5);
    TF_Tensor* result = NULL;
    TF_PRun(session, handle, &ins[i], &fed, 1, &outs[i], &result, 1, NULL, 0, s);
    say(outs[i], s, 0);
    if (result) print_floats(outs[i], result);
    TF_DeleteTensor(result);
    TF_DeleteTensor(fed);
  }
  TF_DeletePRunHandle(handle);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_DeprecatedSession* session = TF_NewDeprecatedSession(options, s);
  OK(s);
  run(session, "x", "y", NULL, s);
  extend(session, "a graph", graph_def(s, 0), s);
  run(session, "x", "y:0", NULL, s);
  extend(session, "more of it", graph_def(s, 1), s);
  run(session, "x", "twice", "y", s);
  run(session, "unused:0", "sum:0", NULL, s);
  extend(session, "the same again", graph_def(s, 1), s);
  extend(session, "no graph", TF_NewBufferFromString("\x0a\x7f", 2), s);
  run(session, "x", "nothing", NULL, s);
  run(session, "nothing", "y", NULL, s);
  run(session, "x", "y", "nothing", s);
  in_parts(session, s);
  TF_DeviceList* devices = TF_DeprecatedSessionListDevices(session, s);
  OK(s);
  printf("devices %d\n", TF_DeviceListCount(devices) > 0);
  TF_DeleteDeviceList(devices);
  TF_CloseDeprecatedSession(session, s);
  say("closed", s, 0);
  TF_DeleteDeprecatedSession(session, s);
  say("deleted", s, 0);
  TF_DeleteSessionOptions(options);
  TF_DeleteStatus(s);
  return 0;
}
