// What the fuzzers share: a check that ends the program, so that libFuzzer keeps the input, and pieces of the input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fuzzer/FuzzedDataProvider.h>

namespace fuzz {

inline void expect(bool holds, const char *what)
{
	if (!holds) {
		std::fprintf(stderr, "does not hold: %s\n", what);
		std::abort();
	}
}

} // namespace fuzz
