// zip.c — Reading and writing zip archives.
#include "file/zip.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "file/coding.h"
#include "file/deflate.h"

enum {
  kEndSize = 22,      // of the record that ends an archive, without its comment
  kLocatorSize = 20,  // of what stands before it in a zip64 archive
  kEnd64Size = 56,
  kEntrySize = 46,  // of an entry of the directory, without name, extra fields and comment
  kLocalSize = 30,  // of the header before a member, without name and extra fields
  kExtra64 = 1,     // the extra field that holds what does not fit into 32 bits
  kMaxComment = UINT16_MAX,
  kMaxMembers = 1 << 20,
  kMaxDirectory = 256 << 20,
  kVersion = 20,
  kVersion64 = 45,
  kFlagEncrypted = 1,
  kFlagUtf8 = 1 << 11,
};
static const uint32_t kEndMark = 0x06054b50, kLocatorMark = 0x07064b50, kEnd64Mark = 0x06064b50;
static const uint32_t kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
static const uint16_t kDate = 0x21;  // the first day that the format knows: 1980-01-01

struct weir_zip_t {
  weir_file_t* file;
  weir_strbuf_t directory;  // names point into it
  weir_zip_member_t* members;
  size_t count;
  uint64_t directory_offset;
  weir_map_t by_name;
};

static uint16_t decode16(const void* data) {
  const uint8_t* p = data;
  return (uint16_t)(p[0] | p[1] << 8);
}
static void put16(weir_strbuf_t* out, uint64_t value) {
  weir_strbuf_putc(out, (char)(value & 0xff));
  weir_strbuf_putc(out, (char)(value >> 8 & 0xff));
}

// ---- the end of the archive ----

typedef struct end_t {
  uint64_t count, size, offset;  // of the directory
} end_t;

static weir_status_t* damaged(const weir_zip_t* zip, const char* what) {
  return WEIR_STATUS(DATA_LOSS, "%s: damaged zip archive: %s", zip->file->path, what);
}

// The last bytes of the file that are an end record with a comment up to the end.
static const char* find_end(weir_view_t tail) {
  for (size_t at = tail.size - kEndSize + 1; at-- > 0;) {
    const char* p = tail.data + at;
    if (weir_decode32(p) == kEndMark && at + kEndSize + decode16(p + 20) == tail.size) return p;
  }
  return NULL;
}

static weir_status_t* read_end64(const weir_zip_t* zip, uint64_t end_offset, end_t* end) {
  char bytes[kEnd64Size];
  if (end_offset < kLocatorSize) return damaged(zip, "no zip64 locator");
  WEIR_TRY(weir_file_read_exactly(zip->file, end_offset - kLocatorSize, bytes, kLocatorSize));
  if (weir_decode32(bytes) != kLocatorMark) return damaged(zip, "no zip64 locator");
  uint64_t offset = weir_decode64(bytes + 8);
  if (offset > zip->file->size || zip->file->size - offset < kEnd64Size)
    return damaged(zip, "the zip64 end lies outside");
  WEIR_TRY(weir_file_read_exactly(zip->file, offset, bytes, kEnd64Size));
  if (weir_decode32(bytes) != kEnd64Mark) return damaged(zip, "no zip64 end");
  *end = (end_t){weir_decode64(bytes + 32), weir_decode64(bytes + 40), weir_decode64(bytes + 48)};
  return NULL;
}

static weir_status_t* read_end(const weir_zip_t* zip, end_t* end) {
  uint64_t file_size = zip->file->size;
  weir_strbuf_t tail = {0};
  size_t size = (size_t)WEIR_MIN(file_size, (uint64_t)kEndSize + kMaxComment);
  if (file_size < kEndSize)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: not a zip archive", zip->file->path);
  if (!weir_strbuf_reserve(&tail, size)) return weir_out_of_memory();
  weir_status_t* status = weir_file_read_exactly(zip->file, file_size - size, tail.data, size);
  if (status) goto done;
  const char* at = find_end(weir_view(tail.data, size));
  if (!at) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "%s: not a zip archive, or it ends early", zip->file->path);
    goto done;
  }
  *end = (end_t){decode16(at + 10), weir_decode32(at + 12), weir_decode32(at + 16)};
  uint64_t offset = file_size - size + (uint64_t)(at - tail.data);
  bool is_64 = end->count == UINT16_MAX || end->size == UINT32_MAX || end->offset == UINT32_MAX;
  if (decode16(at + 4) != 0 && decode16(at + 4) != UINT16_MAX)
    status = WEIR_STATUS(UNIMPLEMENTED, "%s: a zip archive of several parts", zip->file->path);
  else if (is_64) status = read_end64(zip, offset, end);
done:
  weir_strbuf_free(&tail);
  return status;
}

// ---- the directory ----

static weir_status_t* bad_member(const weir_zip_t* zip, weir_view_t name, const char* what) {
  return WEIR_STATUS(DATA_LOSS, "%s: member '%.*s' %s", zip->file->path, WEIR_VIEW_ARG(name), what);
}

// Whether |name| stays below the folder that it is unpacked to, on any system.
static bool is_name_inside(weir_view_t name) {
  weir_view_t rest = name, part;
  if (name.size == 0 || name.data[0] == '/') return false;
  if (memchr(name.data, '\0', name.size) || memchr(name.data, '\\', name.size)) return false;
  if (name.size > 1 && name.data[1] == ':') return false;
  while (weir_view_next(&rest, '/', &part)) {
    if (weir_view_is(part, "..")) return false;
  }
  return true;
}

// Replaces the numbers that are 0xffffffff by those of the extra field for zip64.
static bool read_extra(weir_view_t extra, weir_zip_member_t* member) {
  uint64_t* numbers[] = {&member->size, &member->packed_size, &member->offset};
  while (extra.size >= 4) {
    int id = decode16(extra.data);
    size_t size = decode16(extra.data + 2);
    if (size > extra.size - 4) return false;
    weir_view_t field = weir_view(extra.data + 4, size);
    extra = weir_view(extra.data + 4 + size, extra.size - 4 - size);
    for (size_t i = 0; i < WEIR_COUNT_OF(numbers) && id == kExtra64; ++i) {
      if (*numbers[i] != UINT32_MAX) continue;
      if (field.size < 8) return false;
      *numbers[i] = weir_decode64(field.data);
      field = weir_view(field.data + 8, field.size - 8);
    }
  }
  return true;
}

static weir_status_t* check_member(const weir_zip_t* zip, const weir_zip_member_t* member,
                                   int flags) {
  if (!is_name_inside(member->name))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: member '%.*s' leaves the archive's folder",
                       zip->file->path, WEIR_VIEW_ARG(member->name));
  if (flags & kFlagEncrypted)
    return WEIR_STATUS(UNIMPLEMENTED, "%s: member '%.*s' is encrypted", zip->file->path,
                       WEIR_VIEW_ARG(member->name));
  if (member->method != WEIR_ZIP_STORED && member->method != WEIR_ZIP_DEFLATED)
    return WEIR_STATUS(UNIMPLEMENTED, "%s: member '%.*s' is packed by method %d", zip->file->path,
                       WEIR_VIEW_ARG(member->name), (int)member->method);
  if (member->method == WEIR_ZIP_STORED && member->size != member->packed_size)
    return bad_member(zip, member->name, "is stored, but with two sizes");
  return NULL;
}

static weir_status_t* take_entry(const weir_zip_t* zip, weir_view_t* rest,
                                 weir_zip_member_t* member) {
  const char* p = rest->data;
  if (rest->size < kEntrySize || weir_decode32(p) != kEntryMark)
    return damaged(zip, "bad entry in the directory");
  size_t name_size = decode16(p + 28), extra_size = decode16(p + 30);
  size_t size = kEntrySize + name_size + extra_size + decode16(p + 32);
  if (size > rest->size) return damaged(zip, "the directory ends early");
  *member = (weir_zip_member_t){.name = weir_view(p + kEntrySize, name_size),
                                .method = (weir_zip_method_t)decode16(p + 10),
                                .crc = weir_decode32(p + 16),
                                .packed_size = weir_decode32(p + 20),
                                .size = weir_decode32(p + 24),
                                .offset = weir_decode32(p + 42)};
  if (!read_extra(weir_view(p + kEntrySize + name_size, extra_size), member))
    return bad_member(zip, member->name, "has bad extra fields");
  WEIR_TRY(check_member(zip, member, decode16(p + 8)));
  *rest = weir_view(p + size, rest->size - size);
  return NULL;
}

static int compare_offsets(const void* a, const void* b) {
  uint64_t x = ((const weir_zip_member_t*)a)->offset, y = ((const weir_zip_member_t*)b)->offset;
  return x < y ? -1 : x > y;
}

// Finds where the bytes of |member| begin. They must end before |end|.
static weir_status_t* find_data(const weir_zip_t* zip, weir_zip_member_t* member, uint64_t end) {
  char header[kLocalSize];
  if (member->offset > end || end - member->offset < kLocalSize)
    return bad_member(zip, member->name, "overlaps another or the directory");
  WEIR_TRY(weir_file_read_exactly(zip->file, member->offset, header, kLocalSize));
  if (weir_decode32(header) != kLocalMark || decode16(header + 8) != member->method ||
      decode16(header + 26) != member->name.size)
    return bad_member(zip, member->name, "has a header that contradicts the directory");
  uint64_t skipped = (uint64_t)kLocalSize + member->name.size + decode16(header + 28);
  if (end - member->offset < skipped || end - member->offset - skipped < member->packed_size)
    return bad_member(zip, member->name, "overlaps another or the directory");
  member->data_offset = member->offset + skipped;
  return NULL;
}

static weir_status_t* index_members(weir_zip_t* zip) {
  for (size_t i = 0; i < zip->count; ++i) {
    weir_zip_member_t* member = &zip->members[i];
    bool is_last = i + 1 == zip->count;
    uint64_t end = is_last ? zip->directory_offset : zip->members[i + 1].offset;
    WEIR_TRY(find_data(zip, member, end));
    if (weir_map_find(&zip->by_name, member->name))
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: member '%.*s' is there twice", zip->file->path,
                         WEIR_VIEW_ARG(member->name));
    WEIR_TRY(weir_map_put(&zip->by_name, member->name, member));
  }
  return NULL;
}

static weir_status_t* read_directory(weir_zip_t* zip) {
  end_t end = {0};
  WEIR_TRY(read_end(zip, &end));
  uint64_t file_size = zip->file->size;
  if (end.offset > file_size || end.size > file_size - end.offset)
    return damaged(zip, "the directory lies outside");
  if (end.count > kMaxMembers || end.size > kMaxDirectory)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: a zip archive of %llu members", zip->file->path,
                       (unsigned long long)end.count);
  if (end.count > end.size / kEntrySize) return damaged(zip, "more members than entries");
  zip->members = weir_alloc_array((size_t)end.count, sizeof(*zip->members));
  if (!zip->members || !weir_strbuf_reserve(&zip->directory, (size_t)end.size))
    return weir_out_of_memory();
  zip->directory_offset = end.offset;
  WEIR_TRY(weir_file_read_exactly(zip->file, end.offset, zip->directory.data, (size_t)end.size));
  weir_view_t rest = weir_view(zip->directory.data, (size_t)end.size);
  for (; zip->count < end.count; ++zip->count)
    WEIR_TRY(take_entry(zip, &rest, &zip->members[zip->count]));
  if (zip->count > 1) qsort(zip->members, zip->count, sizeof(*zip->members), compare_offsets);
  return index_members(zip);
}

weir_status_t* weir_zip_open(weir_file_t* take_file, weir_zip_t** out_zip) {
  weir_zip_t* zip = weir_calloc(1, sizeof(*zip));
  if (!zip) {
    weir_file_close(take_file);
    return weir_out_of_memory();
  }
  zip->file = take_file;
  weir_status_t* status = read_directory(zip);
  if (status) {
    weir_zip_close(zip);
    return status;
  }
  *out_zip = zip;
  return NULL;
}

void weir_zip_close(weir_zip_t* zip) {
  if (!zip) return;
  weir_map_free(&zip->by_name);
  weir_strbuf_free(&zip->directory);
  weir_free(zip->members);
  weir_file_close(zip->file);
  weir_free(zip);
}

size_t weir_zip_count(const weir_zip_t* zip) { return zip->count; }
const weir_zip_member_t* weir_zip_at(const weir_zip_t* zip, size_t index) {
  return &zip->members[index];
}
const weir_zip_member_t* weir_zip_find(const weir_zip_t* zip, weir_view_t name) {
  return weir_map_find(&zip->by_name, name);
}
const char* weir_zip_path(const weir_zip_t* zip) { return zip->file->path; }

// ---- reading members ----

static weir_status_t* read_packed(const weir_zip_t* zip, const weir_zip_member_t* member,
                                  weir_strbuf_t* out) {
  size_t size = (size_t)member->packed_size;
  if (!weir_strbuf_reserve(out, size)) return weir_out_of_memory();
  WEIR_TRY(weir_file_read_exactly(zip->file, member->data_offset, out->data + out->size, size));
  out->size += size;
  return NULL;
}

static weir_status_t* read_deflated(const weir_zip_t* zip, const weir_zip_member_t* member,
                                    weir_strbuf_t* out) {
  weir_strbuf_t packed = {0};
  size_t begin = out->size;
  weir_status_t* status = read_packed(zip, member, &packed);
  if (!status)
    status = weir_inflate(WEIR_DEFLATE_RAW, weir_strbuf_view(&packed), (size_t)member->size, out);
  weir_strbuf_free(&packed);
  if (!status || out->size - begin <= member->size) return status;
  weir_status_destroy(status);
  return bad_member(zip, member->name, "is larger than its entry says");
}

weir_status_t* weir_zip_read(const weir_zip_t* zip, const weir_zip_member_t* member, uint64_t limit,
                             weir_strbuf_t* out) {
  size_t begin = out->size;
  if (member->size > limit)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: member '%.*s' is %llu bytes, more than %llu",
                       zip->file->path, WEIR_VIEW_ARG(member->name),
                       (unsigned long long)member->size, (unsigned long long)limit);
  weir_status_t* status = member->method == WEIR_ZIP_STORED ? read_packed(zip, member, out)
                                                            : read_deflated(zip, member, out);
  if (status)
    return weir_status_prefix(status, "%s: member '%.*s': ", zip->file->path,
                              WEIR_VIEW_ARG(member->name));
  if (out->size - begin != member->size)
    return bad_member(zip, member->name, "is smaller than its entry says");
  if (weir_crc32(0, out->data + begin, out->size - begin) != member->crc)
    return bad_member(zip, member->name, "has a wrong CRC-32");
  return NULL;
}

// ---- writing ----

// The fields that an entry of the directory and a member's own header have alike.
static void put_common(const weir_zip_member_t* member, bool is_64, weir_strbuf_t* out) {
  put16(out, is_64 ? kVersion64 : kVersion);
  put16(out, kFlagUtf8);
  put16(out, (uint64_t)member->method);
  put16(out, 0);  // the time of day
  put16(out, kDate);
  weir_put32(out, member->crc);
  weir_put32(out, is_64 ? UINT32_MAX : (uint32_t)member->packed_size);
  weir_put32(out, is_64 ? UINT32_MAX : (uint32_t)member->size);
  put16(out, member->name.size);
}

static void put_extra(const weir_zip_member_t* member, bool has_offset, weir_strbuf_t* out) {
  put16(out, kExtra64);
  put16(out, has_offset ? 24 : 16);
  weir_put64(out, member->size);
  weir_put64(out, member->packed_size);
  if (has_offset) weir_put64(out, member->offset);
}

static bool needs_64(const weir_zip_member_t* member) {
  return member->size >= UINT32_MAX || member->packed_size >= UINT32_MAX ||
         member->offset >= UINT32_MAX;
}

static void put_local(const weir_zip_member_t* member, weir_strbuf_t* out) {
  bool is_64 = needs_64(member);
  weir_put32(out, kLocalMark);
  put_common(member, is_64, out);
  put16(out, is_64 ? 20 : 0);
  weir_strbuf_append(out, member->name.data, member->name.size);
  if (is_64) put_extra(member, false, out);
}

static void put_entry(const weir_zip_member_t* member, weir_strbuf_t* out) {
  bool is_64 = needs_64(member);
  weir_put32(out, kEntryMark);
  put16(out, is_64 ? kVersion64 : kVersion);
  put_common(member, is_64, out);
  put16(out, is_64 ? 28 : 0);
  for (int i = 0; i < 3; ++i) put16(out, 0);  // comment, part, internal attributes
  weir_put32(out, 0);                         // external attributes
  weir_put32(out, is_64 ? UINT32_MAX : (uint32_t)member->offset);
  weir_strbuf_append(out, member->name.data, member->name.size);
  if (is_64) put_extra(member, true, out);
}

weir_status_t* weir_zip_add(weir_zip_writer_t* writer, weir_view_t name, weir_zip_method_t method,
                            weir_view_t data) {
  weir_strbuf_t packed = {0}, header = {0};
  weir_status_t* status = NULL;
  weir_zip_member_t member = {.name = name,
                              .method = method,
                              .crc = weir_crc32(0, data.data, data.size),
                              .packed_size = data.size,
                              .size = data.size,
                              .offset = writer->file->size};
  if (!is_name_inside(name) || name.size > UINT16_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' cannot be the name of a member of a zip archive",
                       WEIR_VIEW_ARG(name));
  if (method == WEIR_ZIP_DEFLATED) {
    status = weir_deflate(WEIR_DEFLATE_RAW, -1, data, &packed);
    if (!status) status = weir_strbuf_finish(&packed);
    if (status) goto done;
    data = weir_strbuf_view(&packed);
    member.packed_size = data.size;
  }
  put_local(&member, &header);
  put_entry(&member, &writer->directory);
  writer->count += 1;
  status = weir_strbuf_finish(&header);
  if (!status) status = weir_writer_write(writer->file, header.data, header.size);
  if (!status) status = weir_writer_write(writer->file, data.data, data.size);
done:
  weir_strbuf_free(&header);
  weir_strbuf_free(&packed);
  return status;
}

// What ends archives that are too large for 32 bits: a record, and where it is.
static void put_end64(const weir_zip_writer_t* writer, uint64_t offset, weir_strbuf_t* out) {
  uint64_t size = writer->directory.size;
  weir_put32(out, kEnd64Mark);
  weir_put64(out, kEnd64Size - 12);
  put16(out, kVersion64);
  put16(out, kVersion64);
  weir_put32(out, 0);
  weir_put32(out, 0);
  weir_put64(out, writer->count);
  weir_put64(out, writer->count);
  weir_put64(out, size);
  weir_put64(out, offset);
  weir_put32(out, kLocatorMark);
  weir_put32(out, 0);
  weir_put64(out, offset + size);
  weir_put32(out, 1);
}

weir_status_t* weir_zip_finish(weir_zip_writer_t* writer) {
  uint64_t offset = writer->file->size, size = writer->directory.size;
  weir_strbuf_t end = {0};
  bool is_64 = writer->count >= UINT16_MAX || offset >= UINT32_MAX || size >= UINT32_MAX;
  if (is_64) put_end64(writer, offset, &end);
  weir_put32(&end, kEndMark);
  weir_put32(&end, 0);  // this part and that of the directory
  for (int i = 0; i < 2; ++i) put16(&end, is_64 ? UINT16_MAX : writer->count);
  weir_put32(&end, is_64 ? UINT32_MAX : (uint32_t)size);
  weir_put32(&end, is_64 ? UINT32_MAX : (uint32_t)offset);
  put16(&end, 0);
  weir_status_t* status = weir_strbuf_finish(&writer->directory);
  if (!status) status = weir_strbuf_finish(&end);
  if (!status) status = weir_writer_write(writer->file, writer->directory.data, (size_t)size);
  if (!status) status = weir_writer_write(writer->file, end.data, end.size);
  weir_strbuf_free(&end);
  return status;
}

void weir_zip_writer_free(weir_zip_writer_t* writer) { weir_strbuf_free(&writer->directory); }
