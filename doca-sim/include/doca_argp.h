/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Command lines: flags from the command line and from a JSON file, with help, version and log levels
 * built in.
 */

#ifndef DOCA_ARGP_H_
#define DOCA_ARGP_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <doca_compat.h>
#include <doca_error.h>
#include <doca_log.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_argp_param;
struct doca_argp_cmd;

/* What the value of a flag is. */
enum doca_argp_type {
	DOCA_ARGP_TYPE_UNKNOWN = 0,
	DOCA_ARGP_TYPE_STRING = 1,
	DOCA_ARGP_TYPE_INT = 2,
	DOCA_ARGP_TYPE_BOOLEAN = 3,
	DOCA_ARGP_TYPE_JSON_OBJ = 4,
};

/* Functions of the program that the library calls, from doca_pe_progress() unless said otherwise. */
typedef doca_error_t (*doca_argp_param_cb_t)(void *, void *);
typedef doca_error_t (*doca_argp_cmd_cb_t)(void *);
typedef doca_error_t (*doca_argp_dpdk_cb_t)(int, char **);
typedef doca_error_t (*doca_argp_validation_cb_t)(void *);
typedef doca_error_t (*doca_argp_logger_cb_t)(enum doca_log_level, const char *, va_list);

/* ---- parser ---- */

/* Prints the help text to stdout. */
DOCA_EXPERIMENTAL
void doca_argp_usage(void);

/* Makes the parser. Both arguments may be NULL. Errors: BAD_STATE, NO_MEMORY, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_init(const char *program_name, void *program_config);

/* ---- flags ---- */

/* Declares a flag of the program. Errors: BAD_STATE, INITIALIZATION, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_param(struct doca_argp_param *input_param);

/* ---- commands ---- */

/* Declares a command of the program. Errors: BAD_STATE, INITIALIZATION, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd);

/* ---- parser ---- */

/* Sets what --version calls. Errors: BAD_STATE, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback);

/* Sets what is called when parsing is over. Errors: BAD_STATE, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback);

/*
 * Sets what gets messages to the user, and how C calls it. Errors: BAD_STATE, ALREADY_EXIST,
 * INVALID_VALUE.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback);

/* Sends messages to the user to stderr again. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_disable_logger_callback(void);

/*
 * Reads a command line, and calls what it names. Errors: BAD_STATE, INITIALIZATION, IO_FAILED,
 * INVALID_VALUE, NO_MEMORY, NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_start(int argc, char **argv);

/* Ends the parser. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_destroy(void);

/* Makes this a DPDK program. */
DOCA_EXPERIMENTAL
void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback);

/* ---- flags ---- */

/* A new flag. Errors: INVALID_VALUE, NO_MEMORY, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_param_create(struct doca_argp_param **param);

/* Names a flag that follows one dash. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name);

/* Names a flag that follows two dashes, and its key in a file. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name);

/* Says what the help text shows behind the flag. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments);

/* Says what the flag is for. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_description(struct doca_argp_param *param, const char *description);

/* Sets what the flag calls. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback);

/* Sets what follows the flag. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type);

/* Refuses command lines without the flag. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_mandatory(struct doca_argp_param *param);

/* Refuses files with the flag. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_cli_only(struct doca_argp_param *param);

/* Allows the flag more than once; in a file, an array of values. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_multiplicity(struct doca_argp_param *param);

/* Refuses other flags beside the flag. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_singular(struct doca_argp_param *param);

/* Allows the flag after inner commands too. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_inherited(struct doca_argp_param *param);

/* Leaves the flag out of the help text. */
DOCA_EXPERIMENTAL
void doca_argp_param_set_hidden(struct doca_argp_param *param);

/* Ends a flag that was never declared. Errors: BAD_STATE, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_param_destroy(struct doca_argp_param *param);

/* ---- commands ---- */

/* A new command. Errors: INVALID_VALUE, NO_MEMORY, BAD_STATE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd);

/* Names a command. */
DOCA_EXPERIMENTAL
void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name);

/* Says what the command is for. */
DOCA_EXPERIMENTAL
void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd, const char *description);

/* Sets what the command calls. */
DOCA_EXPERIMENTAL
void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd, doca_argp_cmd_cb_t callback);

/* Leaves the command out of the help text. */
DOCA_EXPERIMENTAL
void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd);

/* ---- flags ---- */

/* Declares a flag of a command. Errors: BAD_STATE, INITIALIZATION, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_register_param(
	struct doca_argp_cmd *cmd,
	struct doca_argp_param *input_param);

/* ---- commands ---- */

/* Declares a command of a command. Errors: BAD_STATE, INITIALIZATION, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd, struct doca_argp_cmd *input_cmd);

/* Ends a command that was never declared. Errors: BAD_STATE, INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd);

/* ---- parser ---- */

/* The program's log level. Errors: INVALID_VALUE. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_get_log_level(int *log_level);

/* The SDK's log level. */
DOCA_EXPERIMENTAL
doca_error_t doca_argp_get_sdk_log_level(int *log_level);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_ARGP_H_ */
