// png_error.c — How libpng's errors become statuses, and where its memory comes from.
#include "image/png_error.h"

#include "base/alloc.h"

static void on_error(png_structp png, png_const_charp message) {
  weir_png_error_t* error = png_get_error_ptr(png);
  error->status = error->is_out_of_memory ? weir_out_of_memory()
                                          : weir_status_create(error->code, __FILE__, __LINE__,
                                                               "%s: %s", error->prefix, message);
  png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static png_voidp allocate(png_structp png, png_alloc_size_t size) {
  weir_png_error_t* error = png_get_mem_ptr(png);
  void* memory = weir_malloc(size);
  if (!memory) error->is_out_of_memory = true;
  return memory;
}

static void release(png_structp png, png_voidp memory) {
  (void)png;
  weir_free(memory);
}

png_structp weir_png_create_reader(weir_png_error_t* error) {
  return png_create_read_struct_2(PNG_LIBPNG_VER_STRING, error, on_error, on_warning, error,
                                  allocate, release);
}

png_structp weir_png_create_writer(weir_png_error_t* error) {
  return png_create_write_struct_2(PNG_LIBPNG_VER_STRING, error, on_error, on_warning, error,
                                   allocate, release);
}
