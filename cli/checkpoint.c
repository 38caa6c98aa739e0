// checkpoint.c — weir checkpoint: looks into checkpoints, and writes new ones of old ones.
#include "weir/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_WORDS = 1024 };

typedef struct work_t {
  const char* verb;
  const char* words[MAX_WORDS];  // behind the verb: checkpoints, names, patterns
  int word_count;
  const char* out;
  const char* npy;
  long shards, limit;
  bool json;
} work_t;

// ---- patterns: "dense/*"; what the star stands for goes where the star of the new name is ----

static bool matches(const char* pattern, const char* name, const char** out_rest) {
  const char* star = strchr(pattern, '*');
  *out_rest = NULL;
  if (!star) return strcmp(pattern, name) == 0;
  size_t before = (size_t)(star - pattern), after = strlen(star + 1), size = strlen(name);
  if (size < before + after || strncmp(pattern, name, before) != 0 ||
      strcmp(star + 1, name + size - after) != 0)
    return false;
  *out_rest = name + before;
  return true;
}

// |name| by the rule "OLD=NEW", in |out| of |size| bytes; false when the rule is not about it.
static bool rename_by(const char* rule, const char* name, char* out, size_t size) {
  char old[1024];
  const char* rest = NULL;
  const char* equals = strchr(rule, '=');
  snprintf(old, sizeof(old), "%.*s", (int)(equals - rule), rule);
  if (!matches(old, name, &rest)) return false;
  const char* star = strchr(equals + 1, '*');
  const char* end = strchr(old, '*');
  int kept = rest ? (int)(strlen(rest) - strlen(end + 1)) : 0;
  if (!star) snprintf(out, size, "%s", equals + 1);
  else
    snprintf(out, size, "%.*s%.*s%s", (int)(star - equals - 1), equals + 1, kept, rest ? rest : "",
             star + 1);
  return true;
}

// ---- copying ----

static weir_status_t* copy_tensor(weir_checkpoint_t* from, const char* name, const char* as,
                                  weir_checkpoint_writer_t* to) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_checkpoint_read(from, name, &tensor));
  weir_status_t* status = weir_checkpoint_add(to, as, tensor);
  weir_tensor_release(tensor);
  return status;
}

// The rules that were of use, by their place.
typedef struct use_t {
  bool is_used[MAX_WORDS];
} use_t;

// The name under which a tensor is written, in |buffer|; NULL: it is dropped.
static const char* new_name(const work_t* work, const char* name, use_t* use, char* buffer,
                            size_t size) {
  const char* rest = NULL;
  bool is_drop = strcmp(work->verb, "drop") == 0, is_rename = strcmp(work->verb, "rename") == 0;
  for (int i = 1; (is_drop || is_rename) && i < work->word_count; ++i) {
    bool is_about = is_drop ? matches(work->words[i], name, &rest)
                            : rename_by(work->words[i], name, buffer, size);
    if (!is_about) continue;
    use->is_used[i] = true;
    return is_drop ? NULL : buffer;
  }
  return name;
}

// A rule that is about no tensor is a misspelling.
static weir_status_t* check_use(const work_t* work, weir_checkpoint_t* from, const use_t* use) {
  if (strcmp(work->verb, "drop") != 0 && strcmp(work->verb, "rename") != 0) return NULL;
  for (int i = 1; i < work->word_count; ++i) {
    weir_tensor_t* none = NULL;
    char name[1024];
    if (use->is_used[i]) continue;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(work->words[i], "="), work->words[i]);
    return weir_checkpoint_read(from, name, &none);
  }
  return NULL;
}

static weir_status_t* copy_all(const work_t* work, const char* path, weir_checkpoint_writer_t* to) {
  weir_checkpoint_t* from = NULL;
  use_t use = {{false}};
  char buffer[2048];
  WEIR_TRY(weir_checkpoint_open(path, &from));
  weir_status_t* status = NULL;
  if (strcmp(weir_checkpoint_prefix(from), work->out) == 0)
    status = WEIR_STATUS(INVALID_ARGUMENT, "--out=%s is the checkpoint that is read", work->out);
  for (size_t i = 0; i < weir_checkpoint_count(from) && !status; ++i) {
    const char* name = weir_checkpoint_at(from, i)->name;
    const char* as = new_name(work, name, &use, buffer, sizeof(buffer));
    if (as) status = copy_tensor(from, name, as, to);
  }
  if (!status) status = check_use(work, from, &use);
  if (!status && strcmp(work->verb, "rename") == 0 &&
      weir_checkpoint_find(from, "_CHECKPOINTABLE_OBJECT_GRAPH"))
    fputs(
        "weir: note: TensorFlow's objects find their values by the names that "
        "_CHECKPOINTABLE_OBJECT_GRAPH lists, which stay as they are\n",
        stderr);
  weir_checkpoint_close(from);
  return status;
}

// The number of data files that the first checkpoint has, unless another was asked for.
static weir_status_t* shards_of(const work_t* work, int* out_shards) {
  weir_checkpoint_t* first = NULL;
  *out_shards = (int)work->shards;
  if (work->shards > 0) return NULL;
  WEIR_TRY(weir_checkpoint_open(work->words[0], &first));
  *out_shards = weir_checkpoint_shard_count(first);
  weir_checkpoint_close(first);
  return NULL;
}

static weir_status_t* rewrite(const work_t* work) {
  weir_checkpoint_writer_t* writer = NULL;
  int shards = 0;
  int sources = strcmp(work->verb, "merge") == 0 ? work->word_count : 1;
  WEIR_TRY(shards_of(work, &shards));
  WEIR_TRY(weir_checkpoint_writer_create(work->out, shards, &writer));
  weir_status_t* status = NULL;
  for (int i = 0; i < sources && !status; ++i) status = copy_all(work, work->words[i], writer);
  if (!status) status = weir_checkpoint_finish(writer);
  weir_checkpoint_writer_destroy(writer);
  return status;
}

// ---- looking ----

static weir_status_t* print_list(const work_t* work) {
  char* text = NULL;
  weir_checkpoint_t* checkpoint = NULL;
  WEIR_TRY(weir_checkpoint_open(work->words[0], &checkpoint));  // no other kind of file
  weir_checkpoint_close(checkpoint);
  WEIR_TRY(weir_inspect_file(work->words[0], work->json, &text));
  fputs(text, stdout);
  weir_buffer_free(text);
  return NULL;
}

// Reads what |name| is: a tensor, or a way to an object.
static weir_status_t* read_one(weir_checkpoint_t* checkpoint, const char* name,
                               weir_tensor_t** out_tensor) {
  weir_objects_t* objects = NULL;
  weir_status_t* status = weir_checkpoint_read(checkpoint, name, out_tensor);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(weir_objects_open(weir_checkpoint_prefix(checkpoint), &objects));
  if (objects) {
    weir_status_destroy(status);
    status = weir_objects_read(objects, name, out_tensor);
  }
  weir_objects_close(objects);
  return status;
}

static weir_status_t* print_one(const work_t* work, weir_checkpoint_t* checkpoint,
                                const char* name) {
  weir_tensor_t* tensor = NULL;
  char* text = NULL;
  WEIR_TRY(read_one(checkpoint, name, &tensor));
  weir_status_t* status = work->npy    ? weir_tensor_save_npy(tensor, work->npy)
                          : work->json ? weir_tensor_to_json(tensor, &text)
                                       : weir_tensor_to_text(tensor, work->limit, &text);
  if (!status && text && work->json) printf("%s\n", text);
  else if (!status && text) printf("%s = %s\n", name, text);
  weir_buffer_free(text);
  weir_tensor_release(tensor);
  return status;
}

static weir_status_t* print_tensors(const work_t* work) {
  weir_checkpoint_t* checkpoint = NULL;
  WEIR_TRY(weir_checkpoint_open(work->words[0], &checkpoint));
  weir_status_t* status = NULL;
  for (int i = 1; i < work->word_count && !status; ++i)
    status = print_one(work, checkpoint, work->words[i]);
  weir_checkpoint_close(checkpoint);
  return status;
}

// Reads every byte, since that is when checksums are compared; goes on after damage.
static weir_status_t* verify(const work_t* work) {
  weir_checkpoint_t* checkpoint = NULL;
  size_t damaged = 0;
  WEIR_TRY(weir_checkpoint_open(work->words[0], &checkpoint));
  size_t count = weir_checkpoint_count(checkpoint);
  for (size_t i = 0; i < count; ++i) {
    const weir_checkpoint_tensor_t* tensor = weir_checkpoint_at(checkpoint, i);
    weir_tensor_t* value = NULL;
    weir_status_t* status = weir_checkpoint_read(checkpoint, tensor->name, &value);
    weir_tensor_release(value);
    if (!status) continue;
    ++damaged;
    printf("damaged: %s in %s: %s\n", tensor->name, tensor->file ? tensor->file : "its slices",
           weir_status_message(status));
    weir_status_destroy(status);
  }
  if (!damaged)
    printf("%s: %zu tensors, all checksums are right\n", weir_checkpoint_prefix(checkpoint), count);
  weir_checkpoint_close(checkpoint);
  if (!damaged) return NULL;
  return WEIR_STATUS(DATA_LOSS, "%s: %zu of %zu tensors are damaged", work->words[0], damaged,
                     count);
}

// ---- verbs ----

typedef struct job_t {
  const char* name;
  weir_status_t* (*run)(const work_t* work);
  int least, most;  // words
  bool is_writing;
} job_t;

static const job_t jobs[] = {
    {"list", print_list, 1, 1, false},      {"print", print_tensors, 2, MAX_WORDS, false},
    {"verify", verify, 1, 1, false},        {"rename", rewrite, 2, MAX_WORDS, true},
    {"drop", rewrite, 2, MAX_WORDS, true},  {"reshard", rewrite, 1, 1, true},
    {"merge", rewrite, 2, MAX_WORDS, true},
};
enum { JOB_COUNT = sizeof(jobs) / sizeof(jobs[0]) };

static const job_t* find_job(const char* name) {
  for (int i = 0; name && i < JOB_COUNT; ++i) {
    if (strcmp(jobs[i].name, name) == 0) return &jobs[i];
  }
  return NULL;
}

static int unknown_job(const work_t* work) {
  const char* names[JOB_COUNT];
  for (int i = 0; i < JOB_COUNT; ++i) names[i] = jobs[i].name;
  if (!work->verb) return usage_error(&verb_checkpoint, "nothing to do is given");
  const char* meant = weir_suggest(work->verb, names, JOB_COUNT);
  return usage_error(&verb_checkpoint, "'%s' is nothing to do with a checkpoint%s%s%s", work->verb,
                     meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "");
}

static int parse(work_t* work, args_t* args) {
  while (args->next < args->argc) {
    const char* at = args->argv[args->next];
    const char* value = NULL;
    const char* word = NULL;
    if (args_option(args, "out", &work->out) || args_option(args, "npy", &work->npy)) continue;
    if (args_flag(args, "json")) work->json = true;
    else if (args_option(args, "shards", &value)) {
      if (!parse_long(value, &work->shards) || work->shards < 1)
        return usage_error(&verb_checkpoint, "'%s' is not a number of data files", value);
    } else if (args_option(args, "limit", &value)) {
      if (!parse_long(value, &work->limit))
        return usage_error(&verb_checkpoint, "'%s' is not a number", value);
    } else if (work->word_count < MAX_WORDS && (word = args_positional(args))) {
      if (work->verb) work->words[work->word_count++] = word;
      else work->verb = word;
    } else return unknown_argument(&verb_checkpoint, at);
  }
  return EXIT_OK;
}

static int check(const work_t* work, const job_t* job) {
  if (work->word_count < job->least || work->word_count > job->most)
    return usage_error(&verb_checkpoint, "%s takes %s%d of a checkpoint and names, not %d",
                       job->name, job->most > job->least ? "at least " : "", job->least,
                       work->word_count);
  if (job->is_writing != (work->out != NULL))
    return usage_error(&verb_checkpoint,
                       job->is_writing ? "%s needs --out=PREFIX" : "%s writes nothing: no --out",
                       job->name);
  if (strcmp(job->name, "reshard") == 0 && work->shards == 0)
    return usage_error(&verb_checkpoint, "%s needs --shards=N", job->name);
  for (int i = 1; strcmp(job->name, "rename") == 0 && i < work->word_count; ++i) {
    const char* equals = strchr(work->words[i], '=');
    if (!equals || equals == work->words[i] || !equals[1])
      return usage_error(&verb_checkpoint, "'%s' is not OLD=NEW", work->words[i]);
  }
  return EXIT_OK;
}

static int run_checkpoint(int argc, char** argv) {
  work_t work = {.limit = 20};
  args_t args = {.argc = argc, .argv = argv};
  int code = parse(&work, &args);
  if (code != EXIT_OK) return code;
  const job_t* job = find_job(work.verb);
  if (!job) return unknown_job(&work);
  code = check(&work, job);
  if (code != EXIT_OK) return code;
  weir_status_t* status = job->run(&work);
  return status ? fail(status) : EXIT_OK;
}

const verb_t verb_checkpoint = {
    .name = "checkpoint",
    .summary = "list, print, verify and rewrite checkpoints",
    .help =
        "usage: weir checkpoint list P [--json]\n"
        "       weir checkpoint print P NAME... [--json] [--npy=FILE] [--limit=N]\n"
        "       weir checkpoint verify P\n"
        "       weir checkpoint rename P OLD=NEW... --out=Q [--shards=N]\n"
        "       weir checkpoint drop P NAME... --out=Q [--shards=N]\n"
        "       weir checkpoint reshard P --shards=N --out=Q\n"
        "       weir checkpoint merge P P... --out=Q [--shards=N]\n"
        "P is the prefix of a checkpoint of TensorFlow or Weir (\"dir/model.ckpt-100\"), of "
        "either\n"
        "format, or its directory, of which it is the latest. Q is a new one of format V2, which\n"
        "is there as a whole or not at all. A NAME may have a *: 'dense/*'; so may OLD and NEW:\n"
        "'dense/*=layer1/*'.\n\n"
        "  list      tensors with types, shapes and bytes; of TensorFlow 2's objects the ways\n"
        "            that lead to them, and the names of their variables, too\n"
        "  print     values, at most N of a dimension (20; -1: all); a NAME may be the way to an\n"
        "            object, 'model/layers/0/kernel'\n"
        "  verify    read everything, compare all checksums, and name what is damaged\n"
        "  rename, drop    copy all other tensors as they are\n"
        "  reshard   spread the tensors over N data files\n"
        "  merge     the tensors of several checkpoints in one\n"
        "  --json    one object; of print: dtype, shape, and values one after another\n"
        "  --npy=FILE  write the value instead of printing it\n",
    .run = run_checkpoint};
