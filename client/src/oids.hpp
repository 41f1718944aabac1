// Types of PostgreSQL by their oids, which never change.
#pragma once

namespace doorbell::detail::oid {

inline constexpr unsigned boolean = 16;
inline constexpr unsigned int8 = 20;
inline constexpr unsigned int4 = 23;
inline constexpr unsigned text = 25;
inline constexpr unsigned float8 = 701;
inline constexpr unsigned text_array = 1009;
inline constexpr unsigned int8_array = 1016;
inline constexpr unsigned timestamptz = 1184;
inline constexpr unsigned jsonb = 3802;

} // namespace doorbell::detail::oid
