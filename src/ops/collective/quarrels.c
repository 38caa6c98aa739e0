// quarrels.c — Who has been told of a disagreement, and who has not come yet.
#include "ops/collective/quarrels.h"

#include "base/alloc.h"

// A quarrel is kept until all members have been told; but not for longer than that, as some may
// never come, and no more than so many.
enum { LIFE_S = 10, QUARREL_LIMIT = 64 };

typedef struct told_t {
  struct told_t* next;
  uint64_t scope;
  int64_t step_id;
  char device[];
} told_t;

struct weir_quarrel_t {
  weir_quarrel_t* next;  // older
  meeting_key_t key;
  bool is_of_group;
  int group_size, told_count;
  told_t* told;
  weir_status_t* status;
  int64_t end_ns;
};

static void quarrel_free(weir_quarrel_t* quarrel) {
  while (quarrel->told) {
    told_t* told = quarrel->told;
    quarrel->told = told->next;
    weir_free(told);
  }
  weir_status_destroy(quarrel->status);
  weir_free(quarrel);
}

// Drops what is settled, outdated or too much.
static void sweep(weir_quarrels_t* quarrels) {
  int64_t now = weir_clock_ns();
  int count = 0;
  for (weir_quarrel_t** place = &quarrels->newest; *place;) {
    weir_quarrel_t* quarrel = *place;
    bool is_over = quarrel->told_count >= quarrel->group_size || quarrel->end_ns <= now;
    if (!is_over && ++count <= QUARREL_LIMIT) {
      place = &quarrel->next;
      continue;
    }
    *place = quarrel->next;
    quarrel_free(quarrel);
  }
}

void weir_quarrels_free(weir_quarrels_t* quarrels) {
  while (quarrels->newest) {
    weir_quarrel_t* quarrel = quarrels->newest;
    quarrels->newest = quarrel->next;
    quarrel_free(quarrel);
  }
}

weir_quarrel_t* weir_quarrels_add(weir_quarrels_t* quarrels, const meeting_key_t* key,
                                  bool is_of_group, int group_size, const weir_status_t* status) {
  sweep(quarrels);
  weir_quarrel_t* quarrel = weir_calloc(1, sizeof(*quarrel));
  if (!quarrel) return NULL;
  *quarrel = (weir_quarrel_t){.next = quarrels->newest,
                              .key = *key,
                              .is_of_group = is_of_group,
                              .group_size = group_size,
                              .status = weir_status_copy(status),
                              .end_ns = weir_clock_ns() + (int64_t)LIFE_S * 1000000000};
  quarrels->newest = quarrel;
  return quarrel;
}

void weir_quarrel_tell(weir_quarrel_t* quarrel, const weir_collective_t* what) {
  if (!quarrel) return;
  for (const told_t* other = quarrel->told; other; other = other->next) {
    if (!strcmp(other->device, what->device)) return;  // of another instance of the group
  }
  size_t size = strlen(what->device) + 1;
  told_t* told = weir_calloc(1, sizeof(*told) + size);
  if (!told) {
    quarrel->told_count = quarrel->group_size;  // better forgotten than told twice
    return;
  }
  memcpy(told->device, what->device, size);
  told->scope = what->scope;
  told->step_id = what->step_id;
  told->next = quarrel->told;
  quarrel->told = told;
  ++quarrel->told_count;
}

// Whether |what| is of the meeting, or the group, and has not been told: by the rules by which
// members find each other. What members of one session quarrel about is nobody else's business: a
// later session may use the same keys.
static bool concerns(const weir_quarrel_t* quarrel, const meeting_key_t* key,
                     const weir_collective_t* what) {
  bool is_same = quarrel->is_of_group ? quarrel->key.group_key == key->group_key
                                      : !memcmp(&quarrel->key, key, sizeof(*key));
  if (!is_same || quarrel->told_count >= quarrel->group_size) return false;
  bool is_shared = false, is_of_session = false;
  for (const told_t* told = quarrel->told; told; told = told->next) {
    if (!strcmp(told->device, what->device)) return false;
    if (told->scope == what->scope && told->step_id != what->step_id) return false;
    is_of_session |= told->scope == what->scope;
    is_shared |= told->scope != quarrel->told->scope;
  }
  return (is_shared || is_of_session) && quarrel->end_ns > weir_clock_ns();
}

weir_status_t* weir_quarrels_find(weir_quarrels_t* quarrels, const meeting_key_t* key,
                                  const weir_collective_t* what) {
  for (weir_quarrel_t* quarrel = quarrels->newest; quarrel; quarrel = quarrel->next) {
    if (!concerns(quarrel, key, what)) continue;
    weir_quarrel_tell(quarrel, what);
    return weir_status_copy(quarrel->status);
  }
  return NULL;
}
