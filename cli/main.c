// main.c — The weir command: chooses the verb.
#include <stdio.h>
#include <string.h>

#include "cli.h"

static int run_version(int argc, char** argv) {
  (void)argc;
  (void)argv;
  printf("weir %s\n", weir_version());
  return EXIT_OK;
}

static const verb_t verb_version = {.name = "version",
                                    .summary = "print the version",
                                    .help = "usage: weir version\n",
                                    .run = run_version};

static const verb_t* const verbs[] = {
    &verb_show,       &verb_run,   &verb_bench,      &verb_serve,   &verb_freeze,
    &verb_checkpoint, &verb_place, &verb_simulate,   &verb_devices, &verb_ops,
    &verb_server,     &verb_top,   &verb_completion, &verb_version, NULL};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) - 1 };

const verb_t* const* all_verbs(void) { return verbs; }

// Loads what --plugin names, whichever the verb, and takes these arguments out. False: said why
// not.
static bool load_plugins(int* argc, char** argv) {
  args_t args = {.argc = *argc, .argv = argv};
  int kept = 0;
  while (args.next < args.argc) {
    const char* path = NULL;
    if (!args_option(&args, "plugin", &path)) {
      argv[kept++] = argv[args.next++];
      continue;
    }
    weir_status_t* status = weir_plugin_load(path);
    if (!status) continue;
    fail(status);
    return false;
  }
  *argc = kept;
  return true;
}

static void print_help(FILE* out) {
  fputs("usage: weir VERB [ARGUMENTS]\n\n", out);
  for (int i = 0; verbs[i]; ++i) fprintf(out, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
  fputs(
      "\nEvery verb takes --plugin=FILE: a shared object with ops of your own; may be repeated."
      "\n'weir VERB --help' tells more. Exit codes: 0 success, 1 failure, 2 wrong usage.\n",
      out);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  const char* name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    print_help(stdout);
    return EXIT_OK;
  }
  if (strcmp(name, "--version") == 0) name = "version";
  for (int i = 0; verbs[i]; ++i) {
    if (strcmp(name, verbs[i]->name) != 0) continue;
    for (int k = 2; k < argc; ++k) {
      if (strcmp(argv[k], "--help") != 0 && strcmp(argv[k], "-h") != 0) continue;
      fputs(verbs[i]->help, stdout);
      return EXIT_OK;
    }
    int count = argc - 2;
    return load_plugins(&count, argv + 2) ? verbs[i]->run(count, argv + 2) : EXIT_FAILED;
  }
  const char* names[VERB_COUNT];
  for (int i = 0; i < VERB_COUNT; ++i) names[i] = verbs[i]->name;
  const char* meant = weir_suggest(name, names, VERB_COUNT);
  if (meant) fprintf(stderr, "weir: unknown verb '%s' (did you mean '%s'?)\n", name, meant);
  else fprintf(stderr, "weir: unknown verb '%s'\n", name);
  print_help(stderr);
  return EXIT_USAGE;
}
