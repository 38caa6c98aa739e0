// saver_best.c — The checkpoints that stay because their metric is among the best, and the file
// "checkpoint_best" that says which they are:
//
//   best 2 highest
//   0.93 model.ckpt-40
//   0.91 model.ckpt-25
//
// The count tells a file that was cut. It is read again when a run goes on, so that the best of all
// runs stay.
#include <math.h>

#include "api/saver.h"
#include "base/alloc.h"
#include "base/log.h"
#include "weir/argument.h"

#define BEST_NAME "checkpoint_best"

// What the file says.
typedef struct best_t {
  bool higher_is_better;
  weir_names_t names;  // best first
  double* metrics;     // as many
} best_t;

static void best_free(best_t* best) {
  weir_names_free(&best->names);
  weir_free(best->metrics);
}

// ---- which are the best ----

static bool is_better(const weir_saver_t* saver, double a, double b) {
  return saver->higher_is_better ? a > b : a < b;
}

// How many of those that are kept come before one with |metric|; of equals the older.
static size_t count_better(const weir_saver_t* saver, double metric, size_t index) {
  size_t count = 0;
  for (size_t i = 0; i < saver->kept_count; ++i) {
    const double other = saver->kept[i].metric;
    count += is_better(saver, other, metric) || (other == metric && i < index);
  }
  return count;
}

bool weir_saver_is_kept_best(const weir_saver_t* saver, size_t index) {
  const double metric = saver->kept[index].metric;
  if (saver->keep_best <= 0 || isnan(metric)) return false;
  return count_better(saver, metric, index) < (size_t)saver->keep_best;
}

bool weir_saver_is_best(weir_saver_t* saver, double metric) {
  WEIR_ASSERT_ARG(saver);
  if (saver->keep_best <= 0 || isnan(metric)) return false;
  weir_saver_join(saver);
  return count_better(saver, metric, saver->kept_count) < (size_t)saver->keep_best;
}

bool weir_saver_keeps_best(const weir_saver_t* saver, bool* out_higher_is_better) {
  WEIR_ASSERT_ARG(saver);
  if (out_higher_is_better) *out_higher_is_better = saver->higher_is_better;
  return saver->keep_best > 0;
}

// ---- the file ----

// The best |rank|th; |kept_count|: there are not as many.
static size_t find_ranked(const weir_saver_t* saver, size_t rank) {
  for (size_t i = 0; i < saver->kept_count; ++i) {
    const double metric = saver->kept[i].metric;
    if (!isnan(metric) && count_better(saver, metric, i) == rank) return i;
  }
  return saver->kept_count;
}

weir_status_t* weir_saver_write_best(const weir_saver_t* saver, const char* prefix) {
  if (saver->keep_best <= 0) return NULL;
  weir_strbuf_t lines = {0}, text = {0}, path = {0};
  char* directory = weir_saver_directory(prefix);
  int count = 0;
  for (size_t rank = 0; rank < (size_t)saver->keep_best; ++rank) {
    const size_t i = find_ranked(saver, rank);
    const char* name = NULL;
    if (i == saver->kept_count) break;
    if (!weir_saver_is_beside(&saver->kept[i], prefix, &name)) continue;
    weir_strbuf_printf(&lines, "%.17g %s\n", saver->kept[i].metric, name);
    ++count;
  }
  weir_strbuf_printf(&text, "best %d %s\n", count, saver->higher_is_better ? "highest" : "lowest");
  if (count) weir_strbuf_append(&text, lines.data, lines.size);
  weir_status_t* status = directory ? weir_strbuf_finish(&lines) : weir_out_of_memory();
  if (!status) status = weir_strbuf_finish(&text);
  if (!status) status = weir_saver_path(directory, BEST_NAME, &path);
  if (!status) status = weir_fs_replace(path.data, weir_strbuf_view(&text));
  weir_strbuf_free(&lines);
  weir_strbuf_free(&text);
  weir_strbuf_free(&path);
  weir_free(directory);
  return status;
}

static weir_status_t* parse_head(weir_view_t line, best_t* best, int64_t* out_count) {
  weir_view_t word = {0}, count = {0}, rule = {0};
  bool is_right = weir_view_next(&line, ' ', &word) && weir_view_next(&line, ' ', &count) &&
                  weir_view_next(&line, ' ', &rule);
  is_right = is_right && weir_view_equal(word, weir_view_of("best")) &&
             weir_parse_int64(count, out_count) && *out_count >= 0;
  best->higher_is_better = weir_view_equal(rule, weir_view_of("highest"));
  if (is_right && (best->higher_is_better || weir_view_equal(rule, weir_view_of("lowest"))))
    return NULL;
  return WEIR_STATUS(DATA_LOSS, "its first line is not 'best <count> highest' or '… lowest'");
}

static weir_status_t* parse_best(weir_view_t text, best_t* best) {
  weir_view_t line = {0}, metric = {0};
  size_t capacity = 0;
  int64_t count = 0;
  double value = 0;
  weir_view_next(&text, '\n', &line);
  WEIR_TRY(parse_head(line, best, &count));
  while (weir_view_next(&text, '\n', &line) && line.size) {
    if (!weir_view_next(&line, ' ', &metric) || !weir_parse_double(metric, &value) || !line.size)
      return WEIR_STATUS(DATA_LOSS, "a line is not '<metric> <name>'");
    if (!WEIR_GROW(best->metrics, capacity, best->names.count + 1)) return weir_out_of_memory();
    best->metrics[best->names.count] = value;
    WEIR_TRY(weir_names_add(&best->names, line));
  }
  if (best->names.count == (size_t)count) return NULL;
  return WEIR_STATUS(DATA_LOSS, "it has %zu of %lld lines", best->names.count, (long long)count);
}

// NOT_FOUND when there is none, DATA_LOSS when it is not what it should be.
static weir_status_t* load_best(const char* directory, best_t* best) {
  weir_strbuf_t path = {0}, text = {0};
  weir_status_t* status = weir_saver_path(directory, BEST_NAME, &path);
  if (!status) status = weir_fs_read_all(path.data, &text);
  if (!status) {
    status = parse_best(weir_strbuf_view(&text), best);
    if (status) status = weir_status_prefix(status, "%s: ", path.data);
  }
  weir_strbuf_free(&path);
  weir_strbuf_free(&text);
  return status;
}

weir_status_t* weir_best_checkpoint(const char* directory, char** out_prefix, double* out_metric) {
  WEIR_REQUIRE_ARG(directory);
  WEIR_REQUIRE_ARG(out_prefix);
  best_t best = {0};
  weir_strbuf_t path = {0};
  weir_status_t* status = load_best(directory, &best);
  if (weir_status_code(status) == WEIR_NOT_FOUND) {
    weir_status_destroy(status);
    status = NULL;
  }
  if (!status && best.names.count) status = weir_saver_path(directory, best.names.items[0], &path);
  if (!status) {
    *out_prefix = path.data;
    if (out_metric) *out_metric = best.names.count ? best.metrics[0] : NAN;
  } else {
    weir_strbuf_free(&path);
  }
  best_free(&best);
  return status;
}

// ---- taking over ----

// Its position among those that are kept; |kept_count|: it is none of them.
static size_t find_kept(const weir_saver_t* saver, const char* prefix) {
  size_t i = 0;
  while (i < saver->kept_count && strcmp(saver->kept[i].prefix, prefix) != 0) ++i;
  return i;
}

// A save that was killed may have named one here that it did not list.
static weir_status_t* take_over(weir_saver_t* saver, const char* prefix, double metric) {
  const size_t i = find_kept(saver, prefix);
  if (i < saver->kept_count) saver->kept[i].metric = metric;
  else WEIR_TRY(weir_saver_add_kept(saver, prefix, weir_saver_now(), metric));
  return NULL;
}

static weir_status_t* take_over_all(weir_saver_t* saver, const char* directory,
                                    const best_t* best) {
  weir_strbuf_t path = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < best->names.count && !status; ++i) {
    status = weir_saver_path(directory, best->names.items[i], &path);
    if (status) break;
    if (saver->keep_best > 0) status = take_over(saver, path.data, best->metrics[i]);
    else weir_saver_forget(saver, path.data);
  }
  weir_strbuf_free(&path);
  return status;
}

// Only the newest are surely not among the best for which nothing else would speak.
static void forget_older(weir_saver_t* saver) {
  while (saver->max_to_keep >= 0 && saver->kept_count > (size_t)saver->max_to_keep)
    weir_saver_forget(saver, saver->kept[0].prefix);
}

weir_status_t* weir_saver_recover_best(weir_saver_t* saver, const char* directory) {
  best_t best = {0};
  weir_status_t* status = load_best(directory, &best);
  const weir_code_t code = weir_status_code(status);
  if (!status && saver->keep_best > 0 && best.higher_is_better != saver->higher_is_better) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "saver: '%s' has the checkpoints of the %s metric, this saver keeps the "
                         "%s",
                         directory, best.higher_is_better ? "highest" : "lowest",
                         saver->higher_is_better ? "highest" : "lowest");
  } else if (!status) {
    status = take_over_all(saver, directory, &best);
  } else if (code == WEIR_NOT_FOUND || code == WEIR_DATA_LOSS) {
    if (code == WEIR_DATA_LOSS) {
      WEIR_LOG(WARNING, "the best checkpoints are left alone: %s", weir_status_message(status));
      forget_older(saver);
    }
    weir_status_destroy(status);
    status = NULL;
  }
  best_free(&best);
  return status;
}
