// etcd_fuzz.c — Fuzz target: any bytes as what etcd answers. The first one says to what.
#include "cluster/etcd/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

enum { LEASE = 7 };

typedef struct seen_t {
  weir_view_t answer;
  int count;
} seen_t;

static bool is_within(weir_view_t whole, weir_view_t part) {
  return part.size == 0 ||
         (part.data >= whole.data && part.data + part.size <= whole.data + whole.size);
}

static weir_status_t* see(void* arg, const weir_etcd_entry_t* entry) {
  seen_t* seen = arg;
  WEIR_CHECK(is_within(seen->answer, entry->key) && is_within(seen->answer, entry->value));
  ++seen->count;
  return NULL;
}

static void check_end_of(weir_view_t prefix) {
  weir_strbuf_t end = {0};
  weir_etcd_write_end_of(&end, prefix);
  const size_t both = WEIR_MIN(end.size, prefix.size);
  WEIR_CHECK(end.failed || end.size <= prefix.size);
  WEIR_CHECK(!both || memcmp(end.data, prefix.data, both) > 0);
  weir_strbuf_free(&end);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size) return 0;
  const weir_view_t answer = weir_view(data + 1, size - 1);
  seen_t seen = {.answer = answer};
  bool is_put = false;
  int64_t lease = 0, seconds = 0;
  weir_status_t* status = NULL;
  switch (data[0] % 5) {
    case 0: status = weir_etcd_read_range(answer, see, &seen); break;
    case 1: status = weir_etcd_read_put_if(answer, &is_put); break;
    case 2:
      status = weir_etcd_read_grant(answer, &lease, &seconds);
      WEIR_CHECK(status || (lease && seconds > 0));
      break;
    case 3:
      status = weir_etcd_read_keep_alive(answer, LEASE, &seconds);
      WEIR_CHECK(status || seconds >= 0);
      break;
    default: check_end_of(answer); break;
  }
  weir_status_destroy(status);
  return 0;
}
