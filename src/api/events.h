// events.h — An event writer under its public name, as the functions on it share it.
#ifndef WEIR_API_EVENTS_H_
#define WEIR_API_EVENTS_H_

#include "file/event.h"

struct weir_events_t {
  weir_event_writer_t* writer;
};

#endif  // WEIR_API_EVENTS_H_
