// What the shared library exports: what carries CHORD_API and nothing else. Functions carry it one
// by one, the two classes whose code lies in the library as a whole; interfaces without code of
// their own (CacheTier, FileSystem) export nothing and need no mark.
#pragma once

#if defined(__GNUC__)
#define CHORD_API __attribute__((visibility("default")))
#else
#define CHORD_API
#endif
