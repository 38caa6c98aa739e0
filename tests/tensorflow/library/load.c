// load.c — Loads the library it is given, whose op it runs.
#define _GNU_SOURCE  // memmem
#include "../check.h"

int main(int argc, char** argv) {
  TF_Status* s = TF_NewStatus();
  if (argc < 2) return 1;
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = constant(g, s, "x", float_scalar(14));
  OK(s);
  TF_FinishOperation(TF_NewOperation(g, "WeirTestTriple", "before"), s);
  say("before", s, 0);
  TF_Library* none = TF_LoadLibrary("/nowhere/none.so", s);
  printf("no library %d", none != NULL);
  say("", s, 0);
  TF_Library* library = TF_LoadLibrary(argv[1], s);
  OK(s);
  const TF_Buffer ops = TF_GetOpList(library);
  printf("ops %d bytes, has it %d\n", (int)ops.length,
         memmem(ops.data, ops.length, "WeirTestTriple", 14) != NULL);
  TF_Operation* y = unary(g, s, "WeirTestTriple", "after", out(x, 0));
  OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  const TF_Output fetch = out(y, 0);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL, s);
  OK(s);
  print_floats("tripled", result);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
  TF_DeleteLibraryHandle(library);
  TF_DeleteGraph(g);
  TF_DeleteStatus(s);
  return 0;
}
