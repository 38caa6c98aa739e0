// nccl_fake.h — An NCCL for the fake driver's GPUs: what a group of calls asks for is done at its
// end, if all members of the communicator agree and no GPU is told about another collective first.
#ifndef WEIR_TESTING_NCCL_FAKE_H_
#define WEIR_TESTING_NCCL_FAKE_H_

#include "device/cuda/cuda_nccl.h"

extern const nccl_t nccl_fake;
extern int nccl_fake_collectives;     // done so far
extern int nccl_fake_made;            // communicators so far, one for all members
extern int nccl_fake_members;         // that there are now
extern int nccl_fake_aborted;         // members, so far
extern int nccl_fake_failing_groups;  // so many of the next fail at their end
extern int nccl_fake_failing_inits;   // so many of the next communicators cannot be made
extern bool nccl_fake_is_broken;      // so members say when they are asked

#endif  // WEIR_TESTING_NCCL_FAKE_H_
