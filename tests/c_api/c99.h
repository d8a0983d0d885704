// What the C99 program of these tests offers to them.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Walks through the library as a C program would: create, plan, table, pack, prewarm, destroy.
// Returns what went wrong, NULL if nothing did.
const char* c99_walk(const char* cache_dir);

// Whether a value behind the last of an enum is refused where it is passed by value.
const char* c99_wrong_enums(const char* cache_dir);

#ifdef __cplusplus
}
#endif
