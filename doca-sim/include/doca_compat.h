/*
 * doca_compat.h: attributes of the public API. Part of the software DOCA SDK.
 * Programs written for DOCA expect memory and string functions with it.
 */
#ifndef DOCA_COMPAT_H_
#define DOCA_COMPAT_H_

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kept by the compiler even where nothing uses it. */
#define DOCA_USED __attribute__((used))

/* A stable function. */
#define DOCA_STABLE __attribute__((visibility("default"))) DOCA_USED

/* A function that a later release may change; use of one warns unless DOCA_ALLOW_EXPERIMENTAL_API is defined. */
#ifdef DOCA_ALLOW_EXPERIMENTAL_API
#define DOCA_EXPERIMENTAL DOCA_STABLE __attribute__((section(".text.experimental")))
#else
#define DOCA_EXPERIMENTAL \
	DOCA_STABLE __attribute__((section(".text.experimental"), deprecated("the function is experimental")))
#endif

/* A function on its way out; use of one warns unless DOCA_ALLOW_DEPRECATED_API is defined. */
#ifdef DOCA_ALLOW_DEPRECATED_API
#define DOCA_DEPRECATED DOCA_STABLE __attribute__((section(".text.deprecated")))
#else
#define DOCA_DEPRECATED \
	DOCA_STABLE __attribute__((section(".text.deprecated"), deprecated("the function will be removed")))
#endif

/* Structs that carry the version of the API they were compiled for in their first member. */
#define DOCA_STRUCT_START size_t doca_api_version
#define DOCA_STRUCT_GET_VERSION(ptr) ((ptr)->doca_api_version)
#define DOCA_STRUCT_CTOR(object) ((object).doca_api_version = DOCA_VERSION_EXACT)
#define DOCA_STRUCT_PTR_CTOR(ptr) ((ptr)->doca_api_version = DOCA_VERSION_EXACT)
#define DOCA_STRUCT_MEMSET_CTOR(object) DOCA_STRUCT_PTR_MEMSET_CTOR(&(object))
#define DOCA_STRUCT_PTR_MEMSET_CTOR(ptr)             \
	do {                                         \
		memset((ptr), 0, sizeof(*(ptr)));    \
		DOCA_STRUCT_PTR_CTOR(ptr);           \
	} while (0)
#define DOCA_STRUCT_CTOR_LIST_START .doca_api_version = DOCA_VERSION_EXACT
#define DOCA_STRUCT_DEF(tag, variable) struct tag variable = {DOCA_STRUCT_CTOR_LIST_START}

#ifdef __cplusplus
}
#endif

#endif /* DOCA_COMPAT_H_ */
