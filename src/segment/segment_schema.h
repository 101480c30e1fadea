// What a segment asks of a schema.
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_SCHEMA_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_SCHEMA_H_

#include <cstdint>
#include <string_view>

#include "ashlar/schema.h"

namespace ashlar::segment {

// A field's number, or -1. (Schema::IndexOf lives with the analyzers, which a segment does not need.)
inline int FieldNumberOf(const Schema& schema, std::string_view name) {
  for (size_t i = 0; i < schema.fields.size(); ++i)
    if (schema.fields[i].name == name) return static_cast<int>(i);
  return -1;
}

inline int KeyFieldOf(const Schema& schema) { return schema.key.empty() ? -1 : FieldNumberOf(schema, schema.key); }

// Text and keyword fields but the key: they have terms and lengths.
inline bool IsSearchable(const Schema& schema, uint32_t field) {
  const Field& f = schema.fields[field];
  return (f.type == FieldType::kText || f.type == FieldType::kKeyword) && f.name != schema.key;
}

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_SCHEMA_H_
