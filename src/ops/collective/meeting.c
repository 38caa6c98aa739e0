// meeting.c — All members of a meeting have come: who is which, and what they get.
#include <stdlib.h>

#include "base/philox.h"
#include "ops/collective/combine.h"
#include "ops/collective/hub_internal.h"

// Whether |a| comes after |b|: by ranks where they are given, else by job, task and device.
static bool is_after(const member_t* a, const member_t* b) {
  if (a->what.rank != b->what.rank) return a->what.rank > b->what.rank;
  int job = strcmp(a->name.job, b->name.job);
  if (job) return job > 0;
  if (a->name.replica != b->name.replica) return a->name.replica > b->name.replica;
  if (a->name.task != b->name.task) return a->name.task > b->name.task;
  int type = strcmp(a->name.type, b->name.type);
  return type ? type > 0 : a->name.index > b->name.index;
}

static int compare_members(const void* a, const void* b) {
  const member_t *x = *(member_t*const*)a, *y = *(member_t*const*)b;
  return is_after(x, y) ? 1 : is_after(y, x) ? -1 : 0;
}

static weir_status_t* check_ranks(member_t* const* members, int count) {
  for (int i = 0; i + 1 < count; ++i) {
    if (members[i]->what.rank < 0 || members[i]->what.rank != members[i + 1]->what.rank) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Duplicate ranks specified for group members. Received ranks: %d twice",
                       members[i]->what.rank);
  }
  return NULL;
}

// A sender may declare another shape than it sends. It is told when all agree with what it
// declared.
static weir_status_t* check_declared(const member_t* source) {
  const weir_tensor_t* tensor = source->tensor;
  if (!source->dims) return NULL;
  bool is_same = tensor->rank == source->what.dim_count &&
                 !memcmp(tensor->dims, source->dims, sizeof(*source->dims) * tensor->rank);
  if (is_same) return NULL;
  return WEIR_STATUS(INTERNAL, "Declared shape of instance %d does not match shape of input",
                     source->what.instance_key);
}

static weir_status_t* check_source(member_t* const* members, int count) {
  int source = -1;
  for (int i = 0; i < count; ++i) {
    if (!members[i]->what.is_source) continue;
    if (source >= 0) {
      return WEIR_STATUS(INTERNAL,
                         "Instance %d already has source %d, received second claim from %d",
                         members[i]->what.instance_key, source, i);
    }
    source = i;
  }
  if (source >= 0) return check_declared(members[source]);
  return WEIR_STATUS(INTERNAL,
                     "Instance %d found no source for broadcast.  This could mean that there were "
                     "group_size=%d BcastRecvs but no BcastSend.",
                     members[0]->what.instance_key, count);
}

static weir_status_t* make_roster(member_t* const* members, int count, weir_tensor_t** outputs) {
  const int64_t size = (int64_t)count + 1;
  uint64_t id = weir_random_entropy();
  weir_tensor_t* roster = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, 1, &size, &roster));
  weir_status_t* status = weir_tensor_set_string(roster, 0, &id, sizeof(id));
  for (int i = 0; i < count && !status; ++i)
    status = weir_tensor_set_string(roster, i + 1, members[i]->device, strlen(members[i]->device));
  for (int i = 0; i < count && !status; ++i) outputs[i] = weir_tensor_retain(roster);
  weir_tensor_release(roster);
  return status;
}

bool weir_hub_read_roster(const weir_tensor_t* tensor, int count, uint64_t* out_id) {
  if (!tensor || weir_tensor_type(tensor) != WEIR_DTYPE_STRING) return false;
  if (tensor->rank != 1 || tensor->count != (int64_t)count + 1) return false;
  size_t size = 0;
  const char* id = weir_tensor_string(tensor, 0, &size);
  if (size != sizeof(*out_id)) return false;
  memcpy(out_id, id, size);
  return true;
}

static weir_status_t* exchange(weir_hub_t* hub, member_t* const* members, int count,
                               weir_tensor_t** inputs, weir_tensor_t** outputs) {
  const weir_collective_t* what = &members[0]->what;
  for (int i = 0; i < count; ++i) inputs[i] = members[i]->tensor;
  WEIR_TRY(check_ranks(members, count));
  bool is_named = what->space == WEIR_COLLECTIVE_SPACE_NAME;
  if (what->kind == WEIR_COLLECTIVE_BROADCAST && !is_named) WEIR_TRY(check_source(members, count));
  if (what->wants_roster) return make_roster(members, count, outputs);
  if (what->place) return weir_meeting_exchange_there(members, count, outputs);
  return weir_collective_combine(what, hub->pool, inputs, outputs);
}

void weir_meeting_complete(weir_hub_t* hub, meeting_t* meeting) {
  size_t count = (size_t)meeting->count;
  member_t** members = weir_calloc(count, sizeof(*members));
  weir_tensor_t** tensors = weir_calloc(2 * count, sizeof(*tensors));
  weir_status_t* status = members && tensors ? NULL : weir_out_of_memory();
  if (!status) {
    member_t** at = members;
    for (member_t* member = meeting->first; member; member = member->next) *at++ = member;
    qsort(members, count, sizeof(*members), compare_members);
    status = exchange(hub, members, meeting->count, tensors, tensors + count);
    for (size_t i = 0; i < count; ++i) members[i]->output = tensors[count + i];
  }
  status = weir_hub_error(meeting->key.space, status);
  if (status) weir_meeting_fail(meeting, status);
  weir_status_destroy(status);
  weir_free(members);
  weir_free(tensors);
}
