// hub.c — Meetings: who may join which, when one is over, and what its members are told.
#include "ops/collective/hub.h"

#include "ops/collective/combine.h"
#include "ops/collective/hub_internal.h"

// ---- members ----

static bool has_group(const weir_collective_t* what) {
  return what->space != WEIR_COLLECTIVE_SPACE_SHARD && what->space != WEIR_COLLECTIVE_SPACE_NAME;
}

static void member_free(member_t* member) {
  weir_tensor_release(member->tensor);
  weir_free(member->device);
  weir_free(member->dims);
  weir_free(member);
}

// The shape that members must have in common.
static int shape_of(const member_t* member, const int64_t** out_dims) {
  bool is_declared = member->dims || !member->tensor;
  *out_dims = is_declared ? member->dims : member->tensor->dims;
  return is_declared ? member->what.dim_count : member->tensor->rank;
}

static weir_status_t* member_init(member_t* member, const weir_collective_t* what) {
  member->device = weir_strdup(what->device);
  if (!member->device) return weir_out_of_memory();
  member->what.device = member->device;
  if (what->dims) {
    size_t size = sizeof(*what->dims) * (size_t)what->dim_count;
    member->dims = weir_malloc(size ? size : 1);
    if (!member->dims) return weir_out_of_memory();
    memcpy(member->dims, what->dims, size);
    member->what.dims = member->dims;
  }
  WEIR_TRY(weir_device_name_parse(weir_view_of(what->device), &member->name));
  if (what->group_size > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "group_size must be positive integer but got %d",
                     what->group_size);
}

static weir_status_t* member_create(weir_hub_t* hub, const weir_collective_t* what,
                                    weir_tensor_t* tensor, const weir_hub_caller_t* caller,
                                    member_t** out_member) {
  member_t* member = weir_calloc(1, sizeof(*member));
  if (!member) return weir_out_of_memory();
  member->hub = hub;
  member->what = *what;
  member->tensor = weir_tensor_retain(tensor);
  member->caller = *caller;
  int64_t now = weir_clock_ns();
  member->deadline_ns = what->timeout_ns > 0 ? now + what->timeout_ns : INT64_MAX;
  bool is_watched = hub->watch && has_group(what);
  member->watch_ns = is_watched ? now + hub->watch_delay_ns : INT64_MAX;
  weir_status_t* status = member_init(member, what);
  if (status) member_free(member);
  else *out_member = member;
  return status;
}

static void answer(void* arg) {
  member_t* member = arg;
  weir_hub_caller_t caller = member->caller;
  weir_status_t* status = member->status;
  weir_tensor_t* output = member->output;
  // Outside the mutex: a callback under way on another thread ends first and finds nothing to do.
  if (member->token) (void)weir_cancel_deregister(caller.cancel, member->token);
  if (status) weir_tensor_release(output);
  member_free(member);
  caller.done(caller.arg, status, status ? NULL : output);
}

// ---- the end of a meeting ----

void weir_hub_take_out(weir_hub_t* hub, meeting_t* meeting) {
  weir_view_t key = weir_view((const char*)&meeting->key, sizeof(meeting->key));
  meeting_t* oldest = weir_map_find(&hub->meetings, key);
  if (oldest == meeting && !meeting->next) {
    weir_map_remove(&hub->meetings, key);
  } else if (oldest == meeting) {
    // In place of another of the same key: needs no memory.
    weir_status_destroy(weir_map_put(&hub->meetings, key, meeting->next));
  } else {
    while (oldest->next != meeting) oldest = oldest->next;
    oldest->next = meeting->next;
  }
  meeting->next = NULL;
  if (meeting->group) --meeting->group->meeting_count;
  if (hub->is_watching && hub->meetings.count == 0) weir_cond_signal(&hub->alarm);
  for (member_t* member = meeting->first; member; member = member->next) {
    member->meeting = NULL;
    weir_hub_untime(hub, member);
    if (meeting->group) weir_roster_count(meeting->group, member->device, -1);
  }
}

void weir_meeting_fail(meeting_t* meeting, const weir_status_t* status) {
  for (member_t* member = meeting->first; member; member = member->next) {
    if (!member->status) member->status = weir_status_copy(status);
  }
}

weir_status_t* weir_hub_error(weir_collective_space_t space, weir_status_t* take_status) {
  if (!take_status || space == WEIR_COLLECTIVE_SPACE_NAME) return take_status;
  return weir_status_prefix(take_status, "Collective ops is aborted by: ");
}

void weir_hub_settle(weir_hub_t* hub, meeting_t* take_meetings, member_t* own) {
  while (take_meetings) {
    meeting_t* meeting = take_meetings;
    take_meetings = meeting->next;
    if (meeting->first && !meeting->first->status) weir_meeting_complete(hub, meeting);
    for (member_t *member = meeting->first, *next; member; member = next) {
      next = member->next;
      if (member == own) continue;
      if (member->caller.pool) weir_pool_submit(member->caller.pool, answer, member);
      else answer(member);
    }
    weir_free(meeting);
  }
  if (own) answer(own);
}

// ---- joining ----

static bool is_same_shape(const member_t* a, const member_t* b) {
  const int64_t *x, *y;
  int rank = shape_of(a, &x);
  return rank == shape_of(b, &y) && (!rank || memcmp(x, y, sizeof(*x) * (size_t)rank) == 0);
}

// TensorFlow shows what a gather makes.
static const char* shape_text(const member_t* member, char buffer[WEIR_SHAPE_TEXT_SIZE]) {
  const int64_t* dims;
  int64_t shown[WEIR_MAX_RANK];
  int rank = shape_of(member, &dims);
  if (rank) memcpy(shown, dims, sizeof(*dims) * (size_t)rank);
  if (rank && member->what.kind == WEIR_COLLECTIVE_GATHER)
    shown[0] = (int64_t)((uint64_t)shown[0] * (uint64_t)member->what.group_size);
  return weir_shape_text(rank, shown, buffer);
}

// Of nodes that met by a name, in the words of TensorFlow's NCCL ops.
static weir_status_t* check_names(const weir_collective_t* a, const weir_collective_t* b) {
  enum { ALL_REDUCE = 1, BROADCAST = 2, REDUCE = 3 };
  if (a->space != WEIR_COLLECTIVE_SPACE_NAME) return NULL;
  int types[2], i = 0;
  for (const weir_collective_t* of = a; i < 2; of = b)
    types[i++] = of->kind == WEIR_COLLECTIVE_BROADCAST ? BROADCAST
                 : of->is_for_one                      ? REDUCE
                                                       : ALL_REDUCE;
  if (types[0] != types[1])
    return WEIR_STATUS(INTERNAL,
                       "Collective %d previously initialized with type %d but now got type %d",
                       (int)b->merge, types[0], types[1]);
  if (a->group_size == b->group_size) return NULL;
  return WEIR_STATUS(
      INTERNAL, "Collective %d previously initialized with num_global_devices %d but now got %d",
      (int)b->merge, a->group_size, b->group_size);
}

// Members on GPUs meet such as are there, too.
static weir_status_t* check_places(const member_t* first, const member_t* member) {
  if (!first->what.place == !member->what.place) return NULL;
  if (!strcmp(first->name.type, member->name.type))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Collective instance %d goes by NCCL for one of its members and not for "
                       "another: their communication_hints differ",
                       member->what.instance_key);
  return WEIR_STATUS(INTERNAL,
                     "Device %s is joining a group with type%s, but that group has type %s "
                     "(group_key=%d)",
                     member->device, member->name.type, first->name.type, member->what.group_key);
}

// Whether a member's wishes are those of the first to come.
static weir_status_t* check_agreement(const member_t* first, const member_t* member) {
  const weir_collective_t *a = &first->what, *b = &member->what;
  WEIR_TRY(check_names(a, b));
  WEIR_TRY(check_places(first, member));
  if (a->kind != b->kind || a->dtype != b->dtype) {
    return WEIR_STATUS(INTERNAL,
                       "Collective instance %d expected type %d and data_type %d but got type %d "
                       "and data_type %d",
                       b->instance_key, (int)a->kind, (int)a->dtype, (int)b->kind, (int)b->dtype);
  }
  if (!is_same_shape(first, member)) {
    char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shape mismatch in the collective instance %d. Op at device %s expected "
                       "shape %s but another member in the group expected shape %s. This is likely "
                       "due to different input shapes at different members of the collective op.",
                       b->instance_key, member->device, shape_text(member, y),
                       shape_text(first, x));
  }
  if (a->group_size == b->group_size && a->merge == b->merge && a->is_mean == b->is_mean &&
      a->wants_roster == b->wants_roster && a->is_for_one == b->is_for_one &&
      (a->rank < 0) == (b->rank < 0))
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Collective instance %d is reduced in different ways by its members",
                     b->instance_key);
}

// Whether |member| belongs into |meeting|: its device is not in it yet, and what other members of
// its session are in it belong to the same step.
static bool fits(const meeting_t* meeting, const member_t* member) {
  for (const member_t* other = meeting->first; other; other = other->next) {
    if (!strcmp(other->device, member->device)) return false;
    bool is_of_session = other->what.scope == member->what.scope;
    if (is_of_session && other->what.step_id != member->what.step_id) return false;
  }
  return true;
}

static meeting_key_t key_of(const weir_collective_t* what) {
  return (meeting_key_t){.space = what->space,
                         .group_key = what->group_key,
                         .instance_key = what->instance_key,
                         .iteration = what->iteration,
                         .id = what->id};
}

static weir_status_t* find_meeting(weir_hub_t* hub, const member_t* member, weir_roster_t* group,
                                   meeting_t** out_meeting) {
  meeting_key_t key = key_of(&member->what);
  weir_view_t view = weir_view((const char*)&key, sizeof(key));
  meeting_t *oldest = weir_map_find(&hub->meetings, view), *last = oldest;
  for (meeting_t* meeting = oldest; meeting; meeting = meeting->next) {
    *out_meeting = meeting;
    if (fits(meeting, member)) return NULL;
    last = meeting;
  }
  meeting_t* meeting = weir_calloc(1, sizeof(*meeting));
  if (!meeting) return weir_out_of_memory();
  *meeting = (meeting_t){.key = key, .group = group, .last = &meeting->first};
  if (last) last->next = meeting;
  weir_status_t* status = last ? NULL : weir_map_put(&hub->meetings, view, meeting);
  if (status) {
    weir_free(meeting);
    return status;
  }
  if (group) ++group->meeting_count;
  *out_meeting = meeting;
  return NULL;
}

// Takes all meetings of |group| out, as its members disagree about it.
static meeting_t* take_group_out(weir_hub_t* hub, const weir_roster_t* group)
    WEIR_REQUIRES(hub->mu) {
  meeting_t* taken = NULL;
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&hub->meetings, &i));) {
    for (meeting_t *meeting = entry->value, *next; meeting; meeting = next) {
      next = meeting->next;
      if (meeting->group != group) continue;
      weir_hub_take_out(hub, meeting);
      meeting->next = taken;
      taken = meeting;
    }
  }
  return taken;
}

static weir_status_t* check_in(const meeting_t* meeting, const member_t* member) {
  if (meeting->first) WEIR_TRY(check_agreement(meeting->first, member));
  return weir_collective_check(&member->what, member->tensor);
}

// Notes that the members of |ended| and |member| disagree, for those who are still to come.
static void note_quarrel(weir_hub_t* hub, const member_t* member, const meeting_t* ended,
                         const weir_roster_t* group, const weir_status_t* status)
    WEIR_REQUIRES(hub->mu) {
  meeting_key_t key = key_of(&member->what);
  bool is_of_group = group->size != member->what.group_size;
  weir_quarrel_t* quarrel =
      weir_quarrels_add(&hub->quarrels, &key, is_of_group, group->size, status);
  weir_quarrel_tell(quarrel, &member->what);
  for (; ended; ended = ended->next) {
    for (const member_t* other = ended->first; other; other = other->next)
      weir_quarrel_tell(quarrel, &other->what);
  }
}

// Finds the group, unless its members disagree about that.
static weir_status_t* enter_group(weir_hub_t* hub, const member_t* member,
                                  weir_roster_t** out_group, meeting_t** out_ended)
    WEIR_REQUIRES(hub->mu) {
  meeting_key_t key = key_of(&member->what);
  WEIR_TRY(weir_quarrels_find(&hub->quarrels, &key, &member->what));
  weir_status_t* status = weir_rosters_enter(&hub->groups, &member->what, out_group);
  const weir_roster_t* group = *out_group;
  if (!status || !group) return status;
  *out_ended = take_group_out(hub, group);
  if (group->size != member->what.group_size) note_quarrel(hub, member, *out_ended, group, status);
  return status;
}

// Puts the member into its meeting. |out_ended|: meetings that are over thereby. With a status the
// member is in none.
static weir_status_t* place(weir_hub_t* hub, member_t* member, meeting_t** out_ended)
    WEIR_REQUIRES(hub->mu) {
  weir_roster_t* group = NULL;
  meeting_t* meeting = NULL;
  if (member->is_cancelled) return WEIR_STATUS(CANCELLED, "op cancelled");
  if (has_group(&member->what)) WEIR_TRY(enter_group(hub, member, &group, out_ended));
  WEIR_TRY(find_meeting(hub, member, group, &meeting));
  weir_status_t* status = check_in(meeting, member);
  if (!status && meeting->count + 1 < member->what.group_size) status = weir_hub_time(hub, member);
  if (!status) {
    *meeting->last = member;
    meeting->last = &member->next;
    member->meeting = meeting;
    ++meeting->count;
    if (group) weir_roster_count(group, member->device, 1);
  }
  if (!status && meeting->count < member->what.group_size) return NULL;
  weir_hub_take_out(hub, meeting);
  if (status && group) note_quarrel(hub, member, meeting, group, status);
  *out_ended = meeting;
  return status;
}

static void leave(void* arg);

void weir_hub_join(weir_hub_t* hub, const weir_collective_t* what, weir_tensor_t* tensor,
                   const weir_hub_caller_t* caller) {
  member_t* member = NULL;
  meeting_t* ended = NULL;
  weir_status_t* status = member_create(hub, what, tensor, caller, &member);
  if (status) {
    caller->done(caller->arg, status, NULL);
    return;
  }
  member->token = weir_cancel_register(caller->cancel, leave, member);
  weir_mutex_lock(&hub->mu);
  if (!member->token && weir_cancel_is_cancelled(caller->cancel)) member->is_cancelled = true;
  status = place(hub, member, &ended);
  bool is_over = status || ended, is_cancelled = member->is_cancelled;
  weir_mutex_unlock(&hub->mu);
  if (!is_over) return;
  if (status && !is_cancelled) status = weir_hub_error(what->space, status);
  for (meeting_t* meeting = ended; meeting && status; meeting = meeting->next)
    weir_meeting_fail(meeting, status);
  member->status = status;
  weir_hub_settle(hub, ended, member);
}

// A member's step is cancelled: nobody else gets what it wants.
static void leave(void* arg) {
  member_t* member = arg;
  weir_hub_t* hub = member->hub;
  weir_mutex_lock(&hub->mu);
  member->is_cancelled = true;
  meeting_t* meeting = member->meeting;
  if (meeting) {
    member->token = 0;  // this very call: not to be waited for
    weir_hub_take_out(hub, meeting);
  }
  weir_mutex_unlock(&hub->mu);
  if (!meeting) return;
  member->status = WEIR_STATUS(CANCELLED, "op cancelled");
  weir_status_t* status = WEIR_STATUS(
      UNAVAILABLE, "Collective ops is aborted by: %s has left the collective instance %d",
      member->device, member->what.instance_key);
  weir_meeting_fail(meeting, status);
  weir_status_destroy(status);
  weir_hub_settle(hub, meeting, NULL);
}

bool weir_hub_is_shared(const weir_hub_t* hub) { return hub->before != NULL; }

void weir_hub_enter(weir_hub_t* hub, const weir_collective_t* what, weir_tensor_t* tensor,
                    const weir_hub_caller_t* caller) {
  if (hub->before) hub->before(hub->before_self, what, tensor, caller);
  else weir_hub_join(hub, what, tensor, caller);
}

// ---- tasks that are gone ----

static bool awaits_task(const meeting_t* meeting, weir_view_t task) {
  if (meeting->group && weir_roster_has_task(meeting->group, task)) return true;
  for (const member_t* member = meeting->first; member; member = member->next) {
    if (weir_device_is_of_task(member->device, task)) return true;
  }
  return false;
}

void weir_hub_lose(weir_hub_t* hub, weir_view_t task, const weir_status_t* status) {
  meeting_t* ended = NULL;
  weir_map_entry_t* entry;
  weir_mutex_lock(&hub->mu);
  for (size_t i = 0; (entry = weir_map_next(&hub->meetings, &i));) {
    for (meeting_t *meeting = entry->value, *next; meeting; meeting = next) {
      next = meeting->next;
      if (!awaits_task(meeting, task)) continue;
      weir_hub_take_out(hub, meeting);
      meeting->next = ended;
      ended = meeting;
    }
  }
  weir_rosters_lose(&hub->groups, task);
  weir_mutex_unlock(&hub->mu);
  for (meeting_t* meeting = ended; meeting; meeting = meeting->next)
    weir_meeting_fail(meeting, status);
  weir_hub_settle(hub, ended, NULL);
}

// ---- the hub ----

weir_status_t* weir_hub_create(weir_pool_t* pool, weir_hub_t** out_hub) {
  weir_hub_t* hub = weir_calloc(1, sizeof(*hub));
  if (!hub) return weir_out_of_memory();
  hub->pool = pool;
  weir_mutex_init(&hub->mu);
  weir_cond_init(&hub->alarm);
  hub->meetings.owns_keys = true;
  weir_rosters_init(&hub->groups);
  *out_hub = hub;
  return NULL;
}

void weir_hub_put_before(weir_hub_t* hub, weir_hub_enter_fn_t enter, void* self) {
  hub->before = enter;
  hub->before_self = self;
}

void weir_hub_watch(weir_hub_t* hub, weir_hub_watch_fn_t fn, void* self, int64_t delay_ns) {
  hub->watch = fn;
  hub->watch_self = self;
  hub->watch_delay_ns = delay_ns;
}

void weir_hub_destroy(weir_hub_t* hub) {
  if (!hub) return;
  weir_hub_stop(hub);
  WEIR_CHECK(hub->meetings.count == 0);
  weir_map_free(&hub->meetings);
  weir_rosters_free(&hub->groups);
  weir_quarrels_free(&hub->quarrels);
  weir_cond_destroy(&hub->alarm);
  weir_mutex_destroy(&hub->mu);
  weir_free(hub);
}
