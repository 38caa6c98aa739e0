// text.h — Protobuf text format: a transcoder between text and wire bytes, driven by the message
// tables.
#ifndef WEIR_WIRE_TEXT_H_
#define WEIR_WIRE_TEXT_H_

#include "base/string.h"
#include "wire/message.h"

// Appends |text|, parsed as |message|, to |out| as wire bytes. INVALID_ARGUMENT names line, column
// and the unknown field.
WEIR_MUST_USE weir_status_t* weir_text_parse(const weir_message_t* message, weir_view_t text,
                                             weir_strbuf_t* out);

// Appends the wire bytes |data| as indented text. Unknown fields print as numbers, as protobuf
// prints them.
WEIR_MUST_USE weir_status_t* weir_text_print(const weir_message_t* message, weir_view_t data,
                                             weir_strbuf_t* out);

#endif  // WEIR_WIRE_TEXT_H_
