// roots.h — The folders that graphs may use, where a process runs those of others.
//
// They hold for the whole process: what opens files for a graph may be any thread of it. Without
// roots every path is good. Files that the program itself needs (its caches, what its operator
// named) are opened between weir_roots_suspend and weir_roots_resume.
//
// Links and ".." are followed before a path is judged. Whoever can change links below the roots
// from outside, between the judgement and the use, is not kept out.
//
// Thread-safe.
#ifndef WEIR_FILE_ROOTS_H_
#define WEIR_FILE_ROOTS_H_

#include "base/base.h"

// |list|: folders separated by colons, which must exist; NULL: as without. To be removed as often
// as it was added. INVALID_ARGUMENT naming the folder; FAILED_PRECONDITION while there are others.
WEIR_MUST_USE weir_status_t* weir_roots_add(const char* list);
void weir_roots_remove(void);
bool weir_roots_are_set(void);  // and hold on this thread

typedef enum weir_roots_use_t {
  WEIR_ROOTS_OPEN,  // reading, writing, listing, removing, renaming
  WEIR_ROOTS_LOOK,  // whether it is there: also of the folders above the roots
} weir_roots_use_t;
// PERMISSION_DENIED naming |path| (without a scheme) when it is not below a root, whether there is
// such a file or not.
WEIR_MUST_USE weir_status_t* weir_roots_check(const char* path, weir_roots_use_t use);

// Of this thread; they nest.
void weir_roots_suspend(void);
void weir_roots_resume(void);

#endif  // WEIR_FILE_ROOTS_H_
