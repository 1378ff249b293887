/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Logging: messages of the program and of the SDK, each with backends and levels of its own. A smaller
 * level is more severe.
 */

#ifndef DOCA_LOG_H_
#define DOCA_LOG_H_

#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <doca_compat.h>
#include <doca_error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_log_backend;

/* Levels, in steps of ten. */
enum doca_log_level {
	DOCA_LOG_LEVEL_DISABLE = 10,
	DOCA_LOG_LEVEL_CRIT = 20,
	DOCA_LOG_LEVEL_ERROR = 30,
	DOCA_LOG_LEVEL_WARNING = 40,
	DOCA_LOG_LEVEL_INFO = 50,
	DOCA_LOG_LEVEL_DEBUG = 60,
	DOCA_LOG_LEVEL_TRACE = 70,
};

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef void (*log_flush_callback)(char *);

/* ---- levels ---- */

/* Sets the least severe level that an application backend shows. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_lower_limit(
	struct doca_log_backend *backend,
	uint32_t level);

/* Sets the most severe level that an application backend shows. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_upper_limit(
	struct doca_log_backend *backend,
	uint32_t upper_limit);

/* Keeps the lower limit from letting more through. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_lower_limit_strict(struct doca_log_backend *backend);

/* Keeps the upper limit from letting more through. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_level_upper_limit_strict(struct doca_log_backend *backend);

/* Sets the lower limit of all application backends, and of those to come. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_level_set_global_lower_limit(uint32_t level);

/* Sets the upper limit of all application backends, and of those to come. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_level_set_global_upper_limit(uint32_t upper_limit);

/* The lower limit that application backends begin with. */
DOCA_EXPERIMENTAL
uint32_t doca_log_level_get_global_lower_limit(void);

/* The upper limit that application backends begin with. */
DOCA_EXPERIMENTAL
uint32_t doca_log_level_get_global_upper_limit(void);

/* ---- sources and messages ---- */

/* Gives a log source a number. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_register_source(const char *source_name, int *source);

/* Forgets a log source. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_unregister_source(int source);

/* ---- backends ---- */

/* Writes application messages to a stream. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_file(FILE *fptr, struct doca_log_backend **backend);

/* Writes application messages to a file descriptor. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_fd(int fd, struct doca_log_backend **backend);

/* Hands application messages to a function, in a buffer. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_buf(
	char *buf,
	size_t capacity,
	log_flush_callback handler,
	struct doca_log_backend **backend);

/* Writes application messages to the system's log. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_syslog(
	const char *name,
	struct doca_log_backend **backend);

/* ---- levels ---- */

/* Sets the least severe level that an SDK backend shows. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level);

/* ---- backends ---- */

/* Writes SDK messages to a stream. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend);

/* Writes SDK messages to a file descriptor. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend);

/* Hands SDK messages to a function, in a buffer. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_buf_sdk(
	char *buf,
	size_t capacity,
	log_flush_callback handler,
	struct doca_log_backend **backend);

/* Writes SDK messages to the system's log. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_with_syslog_sdk(
	const char *name,
	struct doca_log_backend **backend);

/* ---- levels ---- */

/* Sets the level of all SDK backends, and of those to come. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);

/* The level that SDK backends begin with. */
DOCA_EXPERIMENTAL
uint32_t doca_log_level_get_global_sdk_limit(void);

/* ---- backends ---- */

/* Shows application messages on stdout and stderr. */
DOCA_EXPERIMENTAL
doca_error_t doca_log_backend_create_standard(void);

/* ---- sources and messages ---- */

/*
 * One message of an application, whose text C has formatted. DISABLE is no level of a message; a
 * source that is not registered is no reason to lose one.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_log(
	uint32_t level,
	int source,
	const char *fname,
	int line,
	const char *func,
	const char *format,
	...);

/* Logs at a level from a file that has registered a source. */
#define DOCA_LOG(level, ...) doca_log(level, log_source, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define DOCA_LOG_CRIT(...) DOCA_LOG(DOCA_LOG_LEVEL_CRIT, __VA_ARGS__)
#define DOCA_LOG_ERR(...) DOCA_LOG(DOCA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define DOCA_LOG_WARN(...) DOCA_LOG(DOCA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define DOCA_LOG_INFO(...) DOCA_LOG(DOCA_LOG_LEVEL_INFO, __VA_ARGS__)
#define DOCA_LOG_DBG(...) DOCA_LOG(DOCA_LOG_LEVEL_DEBUG, __VA_ARGS__)
/* Traces are compiled in on request only. */
#ifdef DOCA_LOGGING_ALLOW_TRACE
#define DOCA_LOG_TRC(...) DOCA_LOG(DOCA_LOG_LEVEL_TRACE, __VA_ARGS__)
#else
#define DOCA_LOG_TRC(...) \
	do { \
		if (0) \
			DOCA_LOG(DOCA_LOG_LEVEL_TRACE, __VA_ARGS__); \
	} while (0)
#endif

/* Gives this file a source, named by any tokens, before main() runs. Use once in a file, at the top. */
#define DOCA_LOG_REGISTER(source) \
	static int log_source; \
	static void __attribute__((constructor(101), used)) doca_log_register_this_file(void) \
	{ \
		doca_log_register_source(#source, &log_source); \
	} \
	static void doca_log_register_this_file(void)

#ifdef __cplusplus
}
#endif

#endif /* DOCA_LOG_H_ */
