// A program of somebody who uses the installed library: prints the version of headers and library, and a cursor.
#include <doorbell/doorbell.hpp>

#include <iostream>

int main()
{
	const doorbell::Event event{"repo:foo", 42, "push", "{}", 1767225600000042};
	std::cout << doorbell::version << ' ' << doorbell::format_mark(doorbell::mark_of(event)) << '\n';
}
