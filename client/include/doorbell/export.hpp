/* DOORBELL_API marks what the shared library exports; everything else in it is hidden. (Read by C compilers, too.) */
#pragma once

#if defined(__GNUC__)
#define DOORBELL_API __attribute__((visibility("default")))
#else
#define DOORBELL_API
#endif
