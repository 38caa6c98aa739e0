// ops.c — weir ops: what this build can compute.
#include <stdio.h>
#include <string.h>

#include "cli.h"

static int run_ops(int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  const char* name = NULL;
  bool json = false;
  while (args.next < argc) {
    const char* at = argv[args.next];
    if (args_flag(&args, "json")) json = true;
    else if (!name && (name = args_positional(&args))) continue;
    else return unknown_argument(&verb_ops, at);
  }
  char* text = NULL;
  weir_status_t* status = weir_describe_ops(name, json, &text);
  if (status) return fail(status);
  fputs(text, stdout);
  weir_buffer_free(text);
  return EXIT_OK;
}

const verb_t verb_ops = {
    .name = "ops",
    .summary = "list the ops of this build",
    .help =
        "usage: weir ops [NAME] [--json]\n"
        "Lists every op: name, types its kernels take, devices, whether it has a gradient.\n"
        "With NAME, that op alone with its inputs, outputs and attributes.\n\n"
        "  --json    one JSON object a line\n"
        "  --plugin=FILE  with the ops of a shared object; may be repeated\n",
    .run = run_ops};
