// devices.c — weir devices: what this machine computes on.
#include <stdio.h>

#include "cli.h"

static int run_devices(int argc, char** argv) {
  char* text = NULL;
  if (argc > 0) return unknown_argument(&verb_devices, argv[0]);
  weir_status_t* status = weir_describe_devices(&text);
  if (status) return fail(status);
  fputs(text, stdout);
  weir_buffer_free(text);
  return EXIT_OK;
}

const verb_t verb_devices = {
    .name = "devices",
    .summary = "list the devices of this machine",
    .help =
        "usage: weir devices\n"
        "Lists the devices of this machine, as --devices of other verbs takes them: the CPU,\n"
        "and GPUs with the libraries that their kernels need, or why there are none.\n",
    .run = run_devices};
