// export.h — Compiler attributes of the public headers.
#ifndef WEIR_EXPORT_H_
#define WEIR_EXPORT_H_

#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_USE __attribute__((warn_unused_result))
#define WEIR_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

#endif  // WEIR_EXPORT_H_
