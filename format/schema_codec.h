// A schema as bytes (SPEC D-5 to D-7): the form inside the catalog value, journal headers and segments' meta sections, which
// hold it as a sized string. The bytes of a schema are unique: equal schemas have equal bytes.
#ifndef ASHLAR_FORMAT_SCHEMA_CODEC_H_
#define ASHLAR_FORMAT_SCHEMA_CODEC_H_

#include <optional>

#include "ashlar/schema.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kFieldNameBytesMax = 255;
inline constexpr size_t kStemNameBytesMax = 63;
inline constexpr size_t kSchemaBytesMax = size_t{1} << 20;

// Appends the schema's bytes. Never fails; what a decoder would refuse (too many fields, a name too long) is refused by
// Schema::Validate, and by whoever reads the bytes back before publishing them.
void EncodeSchema(const Schema& schema, ByteBuffer* out);

// nullopt iff `bytes` are not the encoding of a schema within the limits above. Says nothing about Schema::Validate.
std::optional<Schema> DecodeSchema(ByteSpan bytes);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_SCHEMA_CODEC_H_
