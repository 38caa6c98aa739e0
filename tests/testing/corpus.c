// corpus.c — Runs fuzz targets, all of them linked into one program, over the inputs that are kept
// for them: `fuzz_corpora CORPORA NAME…`. Each input is given whole and cut short, so that targets
// that no fuzzer has run for a while still compile, and still stand what was found once.
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIR_FUZZ_TARGET(name) int name##_input(const uint8_t* data, size_t size);
#include "targets.inc"
#undef WEIR_FUZZ_TARGET

const char* __asan_default_options(void);

// As of the targets that need it: what asks for all memory is to be told that there is none.
const char* __asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

typedef struct {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
} target_t;

static const target_t targets[] = {
#define WEIR_FUZZ_TARGET(name) {#name, name##_input},
#include "targets.inc"
#undef WEIR_FUZZ_TARGET
};

// The target gets a copy of just that size, so that a read beyond it is one beyond the allocation.
static void run_copy(const target_t* target, const uint8_t* data, size_t size) {
  uint8_t* copy = malloc(size > 0 ? size : 1);
  if (!copy) abort();
  if (size > 0) memcpy(copy, data, size);
  target->run(copy, size);
  free(copy);
}

static bool run_file(const target_t* target, const char* path) {
  FILE* file = fopen(path, "rb");
  static uint8_t data[1 << 20];
  if (!file) return false;
  const size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  const size_t sizes[] = {size, size - (size > 0), size / 2, size / 16};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) run_copy(target, data, sizes[i]);
  return size > 0;
}

static int run_folder(const target_t* target, const char* folder) {
  run_copy(target, NULL, 0);
  DIR* files = opendir(folder);
  if (!files) return 0;  // a target needs no corpus
  int failures = 0;
  for (const struct dirent* file; (file = readdir(files));) {
    char path[4096];
    const bool fits = snprintf(path, sizeof path, "%s/%s", folder, file->d_name) < (int)sizeof path;
    if (file->d_name[0] == '.' || (fits && run_file(target, path))) continue;
    fprintf(stderr, "%s cannot be read\n", path);
    ++failures;
  }
  closedir(files);
  return failures;
}

// Failures of one target; its inputs are in the folder of its name, without "_fuzz".
static int run_named(const char* corpora, const char* name) {
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; ++i) {
    if (strcmp(targets[i].name, name) != 0) continue;
    char folder[4096];
    const int length = (int)(strlen(name) - strlen("_fuzz"));
    if (snprintf(folder, sizeof folder, "%s/%.*s", corpora, length, name) >= (int)sizeof folder)
      return 1;
    fprintf(stderr, "%s\n", name);
    return run_folder(&targets[i], folder);
  }
  fprintf(stderr, "no fuzz target is named %s\n", name);
  return 1;
}

int main(int count, char** arguments) {
  int failures = count < 3;
  for (int i = 2; i < count; ++i) failures += run_named(arguments[1], arguments[i]);
  return failures > 0;
}
