// What the fuzzers share. Each is one file that includes this and defines fuzz::test.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fuzzer/FuzzedDataProvider.h>

namespace fuzz {

void test(FuzzedDataProvider &input);

// Ends the program when it does not, and libFuzzer keeps the input.
inline void expect(bool holds, const char *what)
{
	if (!holds) {
		std::fprintf(stderr, "does not hold: %s\n", what);
		std::abort();
	}
}

} // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) // NOLINT: libFuzzer's name
{
	FuzzedDataProvider input(data, size);
	fuzz::test(input);
	return 0;
}
