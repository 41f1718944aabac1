// How far a subscription by prefix has come in the streams that it was given last, so that old rings are known as such.
//
// A table of fixed size, whatever the number of streams: a stream takes the place of another one, whose next ring may
// then cost a read in vain. Two streams with the same hash of 64 bits can hide a ring of each other; the sweep finds
// those events.
//
// Pure: no I/O.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace doorbell::detail {

class Reached {
public:
	void deliver(std::string_view stream, std::int64_t seq)
	{
		const std::size_t hash = hash_of(stream);
		places_[hash % places_.size()] = {hash, seq};
	}

	// The seq delivered last, or 0 when that is not known.
	std::int64_t at(std::string_view stream) const
	{
		const std::size_t hash = hash_of(stream);
		const Place &place = places_[hash % places_.size()];
		return place.hash == hash ? place.seq : 0;
	}

	void clear() { places_ = {}; }

private:
	struct Place {
		std::size_t hash = 0;
		std::int64_t seq = 0;
	};

	static std::size_t hash_of(std::string_view stream) { return std::hash<std::string_view>{}(stream); }

	std::array<Place, 1024> places_{};
};

} // namespace doorbell::detail
