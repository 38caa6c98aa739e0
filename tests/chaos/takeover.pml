/* takeover.pml — How state comes back: two parameter servers with a variable each, a chief that restores, two workers that take steps
   (src/library/loop_begin.c), and servers that lose what they have.

   A step adds one to each variable. It needs both values, reads and writes them one after the other on the two servers, as other steps
   do meanwhile, and fails where one is missing. A server's loss ends the steps that run: on both servers, for their master tells them.
   A worker takes a step after it saw that no variable is missing. The chief looks, too; where any is missing it takes the values of all
   (-DKEEP leaves them) and gives each that of the checkpoint, one after the other.

   What must hold: a step that was begun after the variables were seen, and ended well, is in both or in neither, whatever was lost and
   restored meanwhile. So when all is quiet both variables are the same. With -DKEEP they need not be: a worker finds nothing missing
   between the two assignments. Steps that fail are left out here: they may be taken in part, and only a restore undoes that. */

#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef STEPS
#define STEPS 2
#endif
#define WORKERS 2
#define MISSING 255

byte value[2];       /* of the variables; MISSING: the server has come back empty */
byte saved;          /* the checkpoint: of both, they were the same */
byte losses = LOSSES;
byte at_work;        /* workers that have not taken all of their steps */
bool is_torn;        /* some step failed halfway, and nothing was restored since */
byte epoch;          /* of losses: a step that began in an earlier one is ended */

#define is_missing (value[0] == MISSING || value[1] == MISSING)

/* One of the writes of a step. Fails when its server was lost, or the step was ended. */
inline add(i, began, has_failed) {
  atomic {
    if
    :: !has_failed && began == epoch && value[i] != MISSING -> value[i]++
    :: else -> has_failed = true
    fi
  }
}

proctype worker() {
  byte taken = 0, began;
  bool has_failed, has_first;
  do
  :: taken < STEPS ->
     /* It waits for the chief, by a session that knows the servers of now: after a loss its next step is ABORTED. */
     atomic { !is_missing -> began = epoch; has_failed = false }
     if                                 /* servers get their parts of the step in any order */
     :: true -> add(0, began, has_failed); has_first = !has_failed; add(1, began, has_failed)
     :: true -> add(1, began, has_failed); has_first = !has_failed; add(0, began, has_failed)
     fi;
     if
     :: !has_failed -> taken++
     :: has_failed && has_first -> is_torn = true
     :: has_failed && !has_first -> has_first = false
     fi
  :: else -> break
  od;
  at_work--
}

proctype chief() {
  do
  :: atomic { is_missing -> skip }
#ifndef KEEP
     value[0] = MISSING;
     value[1] = MISSING;
#endif
     is_torn = false;
     if
     :: value[0] = saved; value[1] = saved
     :: value[1] = saved; value[0] = saved
     fi
  :: atomic {                           /* a checkpoint holds whole steps: src/op/gate.h */
       !is_missing && value[0] == value[1] && !is_torn && value[0] != saved -> saved = value[0]
     }
  :: at_work == 0 && losses == 0 && !is_missing -> break
  od
}

proctype fate() {
  do
  :: atomic { losses > 0 -> losses--; epoch++; if :: value[0] = MISSING :: value[1] = MISSING fi }
  :: losses == 0 -> break
  od
}

init {
  atomic {
    at_work = WORKERS;
    run chief();
    run fate();
    run worker();
    run worker()
  }
  (_nr_pr == 1);
  assert(is_torn || value[0] == value[1])
}
