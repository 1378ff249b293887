/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Attributes that say how settled a function is, and helpers for structures that carry the API version
 * they were compiled with.
 */

#ifndef DOCA_COMPAT_H_
#define DOCA_COMPAT_H_

#include <doca_config.h>
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
/* Programs have come to count on these two being here. */
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps a symbol in the object even when nothing refers to it. */
#define DOCA_USED __attribute__((used))

/* A function that stays as it is for a whole major version. */
#define DOCA_STABLE __attribute__((visibility("default"))) DOCA_USED

/* A function that may change in any release: using it warns until the program says that it knows. */
#ifdef DOCA_ALLOW_EXPERIMENTAL_API
#define DOCA_EXPERIMENTAL DOCA_STABLE __attribute__((section(".text.experimental")))
#else
#define DOCA_EXPERIMENTAL \
	DOCA_STABLE __attribute__((deprecated("experimental: define DOCA_ALLOW_EXPERIMENTAL_API to use it"), \
				   section(".text.experimental")))
#endif

/* A function on its way out. */
#ifdef DOCA_ALLOW_DEPRECATED_API
#define DOCA_DEPRECATED DOCA_STABLE __attribute__((section(".text.deprecated")))
#else
#define DOCA_DEPRECATED \
	DOCA_STABLE __attribute__((deprecated("define DOCA_ALLOW_DEPRECATED_API to use it"), \
				   section(".text.deprecated")))
#endif

/* Versioned structures: the first member holds the version of the headers that the program saw. */
#define DOCA_STRUCT_START size_t __doca_api_version
#define DOCA_STRUCT_GET_VERSION(pointer) ((pointer)->__doca_api_version)
#define DOCA_STRUCT_CTOR(object) (object).__doca_api_version = DOCA_VERSION_EXACT
#define DOCA_STRUCT_PTR_CTOR(pointer) (pointer)->__doca_api_version = DOCA_VERSION_EXACT
#define DOCA_STRUCT_MEMSET_CTOR(object) \
	do { \
		memset(&(object), 0, sizeof(object)); \
		DOCA_STRUCT_CTOR(object); \
	} while (0)
#define DOCA_STRUCT_PTR_MEMSET_CTOR(pointer) \
	do { \
		memset((pointer), 0, sizeof(*(pointer))); \
		DOCA_STRUCT_PTR_CTOR(pointer); \
	} while (0)
#define DOCA_STRUCT_CTOR_LIST_START .__doca_api_version = DOCA_VERSION_EXACT
#define DOCA_STRUCT_DEF(tag, variable) struct tag variable = {DOCA_STRUCT_CTOR_LIST_START}

/* The structure macros need the version of these headers. (It needs the attributes above.) */
#include <doca_version.h>

#ifdef __cplusplus
}
#endif

#endif /* DOCA_COMPAT_H_ */
