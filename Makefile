# pg_doorbell: the extension by PGXS.
EXTENSION = pg_doorbell
MODULE_big = pg_doorbell
DATA = $(wildcard sql/*--*.sql)
OBJS = $(patsubst %.cpp,%.o,$(wildcard src/*.cpp))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
PG_CPPFLAGS = -Iclient/include
PG_CXXFLAGS = -std=c++17 -isystem $(shell $(PG_CONFIG) --includedir-server) -Wextra -Wshadow -Wno-register \
	-Wno-unused-parameter -Wno-missing-field-initializers -fno-exceptions -fno-rtti -fno-threadsafe-statics \
	-fvisibility=hidden -MMD -MP
include $(PGXS)

# The bitcode of C++ files: PGXS gives the compiler no C++ standard of ours.
COMPILE.cxx.bc += -std=c++17 -Wno-register -fno-exceptions -fno-rtti
-include $(OBJS:.o=.d)
