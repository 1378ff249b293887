/*
 * The command-line parser as programs use it: declaring, starting, commands, files, help, and its misuse.
 */
#define _GNU_SOURCE
#include "check.h"

#include <doca_argp.h>
#include <doca_log.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

struct config {
	char device[64];
	int gid;
	bool cm;
	int commands;
	int validations;
	char logged[256];
};

static struct config config;
static bool own_version;

static doca_error_t on_device(void *value, void *to)
{
	snprintf(((struct config *)to)->device, 64, "%s", (char *)value);
	return strcmp(value, "refused") == 0 ? DOCA_ERROR_NOT_FOUND : DOCA_SUCCESS;
}

static doca_error_t on_gid(void *value, void *to)
{
	((struct config *)to)->gid = *(int *)value;
	return DOCA_SUCCESS;
}

static doca_error_t on_cm(void *value, void *to)
{
	((struct config *)to)->cm = *(bool *)value;
	return DOCA_SUCCESS;
}

static doca_error_t on_command(void *to)
{
	((struct config *)to)->commands++;
	return DOCA_SUCCESS;
}

static doca_error_t on_validation(void *to)
{
	((struct config *)to)->validations++;
	return ((struct config *)to)->gid == 99 ? DOCA_ERROR_BAD_CONFIG : DOCA_SUCCESS;
}

static doca_error_t on_log(enum doca_log_level level, const char *format, va_list args)
{
	CHECK(level == DOCA_LOG_LEVEL_ERROR);
	vsnprintf(config.logged, sizeof(config.logged), format, args);
	return DOCA_SUCCESS;
}

static doca_error_t on_version(void *value, void *to)
{
	(void)value;
	(void)to;
	doca_argp_destroy();
	exit(7);
}

static struct doca_argp_param *param(const char *short_name, const char *long_name, enum doca_argp_type type,
				     doca_argp_param_cb_t callback)
{
	struct doca_argp_param *made;

	OK(doca_argp_param_create(&made));
	doca_argp_param_set_short_name(made, short_name);
	doca_argp_param_set_long_name(made, long_name);
	doca_argp_param_set_description(made, "what it is for");
	doca_argp_param_set_callback(made, callback);
	doca_argp_param_set_type(made, type);
	return made;
}

static void declare(void)
{
	struct doca_argp_param *device, *enabled;
	struct doca_argp_cmd *set;

	memset(&config, 0, sizeof(config));
	OK(doca_argp_init(NULL, &config));
	device = param("d", "device", DOCA_ARGP_TYPE_STRING, on_device);
	doca_argp_param_set_arguments(device, "<name>");
	doca_argp_param_set_mandatory(device);
	OK(doca_argp_register_param(device));
	OK(doca_argp_register_param(param("g", "gid-index", DOCA_ARGP_TYPE_INT, on_gid)));
	OK(doca_argp_register_param(param("cm", "use-rdma-cm", DOCA_ARGP_TYPE_BOOLEAN, on_cm)));
	OK(doca_argp_cmd_create(&set));
	doca_argp_cmd_set_name(set, "set");
	doca_argp_cmd_set_description(set, "what it does");
	doca_argp_cmd_set_callback(set, on_command);
	enabled = param("e", NULL, DOCA_ARGP_TYPE_INT, on_gid);
	doca_argp_param_set_mandatory(enabled);
	OK(doca_argp_cmd_register_param(set, enabled));
	OK(doca_argp_register_cmd(set));
	OK(doca_argp_register_validation_callback(on_validation));
	OK(doca_argp_register_logger_callback(on_log));
	if (own_version)
		OK(doca_argp_register_version_callback(on_version));
}

/* Runs one command line, whose words are separated by spaces, on a new parser. */
static doca_error_t run(const char *line)
{
	char words[512], *argv[16] = {"program"}, *rest = words;
	doca_error_t result;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	while (argc < 16 && (argv[argc] = strtok_r(rest, " ", &rest)) != NULL)
		argc++;
	declare();
	result = doca_argp_start(argc, argv);
	OK(doca_argp_destroy());
	return result;
}

static void command_lines(void)
{
	int level;

	OK(run("-d mlx5_0 -g -3 -cm"));
	CHECK(strcmp(config.device, "mlx5_0") == 0);
	CHECK(config.gid == -3 && config.cm && config.validations == 1);
	OK(run("--device=mlx5_1 --gid-index 4 -l 70 --sdk-log-level 10"));
	CHECK(strcmp(config.device, "mlx5_1") == 0);
	CHECK(config.gid == 4 && !config.cm);
	OK(doca_argp_get_log_level(&level));
	CHECK(level == DOCA_LOG_LEVEL_TRACE);
	OK(doca_argp_get_sdk_log_level(&level));
	CHECK(level == DOCA_LOG_LEVEL_DISABLE);
	OK(run("-d x set -e 5"));
	CHECK(config.commands == 1 && config.gid == 5);

	FAILS(INVALID_VALUE, run(""));
	CHECK(strstr(config.logged, "--device") != NULL);
	FAILS(INVALID_VALUE, run("-d"));
	FAILS(INVALID_VALUE, run("-d x -g word"));
	FAILS(INVALID_VALUE, run("-d x -d y"));
	FAILS(INVALID_VALUE, run("-d x word"));
	FAILS(INVALID_VALUE, run("-d x set"));
	FAILS(INVALID_VALUE, run("-d x -l 42"));
	FAILS(NOT_SUPPORTED, run("-d x --unknown"));
	CHECK(strstr(config.logged, "--unknown") != NULL);
	FAILS(NOT_SUPPORTED, run("-d x set -cm"));
	FAILS(NOT_FOUND, run("-d refused"));
	FAILS(BAD_CONFIG, run("-d x -g 99"));
}

/* Runs the parser on a file with this text. */
static doca_error_t run_file(const char *text)
{
	char path[] = "/tmp/argp-conformance-XXXXXX", line[64];
	int fd = mkstemp(path);
	doca_error_t result;

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	snprintf(line, sizeof(line), "-j %s", path);
	result = run(line);
	unlink(path);
	return result;
}

static void files(void)
{
	OK(run_file("{\"doca_general_flags\": {\"log-level\": 50},\n"
				"/* comment */ \"doca_program_flags\": {\"device\": \"a\", // comment\n"
				"\"gid-index\": 0x10, \"use-rdma-cm\": true,}}"));
	CHECK(strcmp(config.device, "a") == 0);
	CHECK(config.gid == 16 && config.cm);
	FAILS(INVALID_VALUE, run_file("{\"device\": 1}"));
	FAILS(NOT_SUPPORTED, run_file("{\"device\": \"a\", \"unknown\": 1}"));
	FAILS(IO_FAILED, run_file("{\"device\": "));
	FAILS(IO_FAILED, run("-j /nonexistent/file"));
}

/* How a process ends that runs this command line. */
static int end_of(const char *line)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(100);
		run(line);
		_exit(101);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void states(void)
{
	char *argv[] = {"program", NULL};
	struct doca_argp_param *device;
	struct doca_argp_cmd *cmd;

	FAILS(BAD_STATE, doca_argp_destroy());
	FAILS(BAD_STATE, doca_argp_start(1, argv));
	FAILS(BAD_STATE, doca_argp_param_create(&device));
	FAILS(BAD_STATE, doca_argp_cmd_create(&cmd));
	FAILS(BAD_STATE, doca_argp_register_version_callback(on_version));
	FAILS(BAD_STATE, doca_argp_register_logger_callback(on_log));
	OK(doca_argp_init("program", NULL));
	FAILS(BAD_STATE, doca_argp_init("program", NULL));
	FAILS(BAD_STATE, doca_argp_disable_logger_callback());
	OK(doca_argp_register_logger_callback(on_log));
	FAILS(ALREADY_EXIST, doca_argp_register_logger_callback(on_log));
	FAILS(INVALID_VALUE, doca_argp_register_logger_callback(NULL));
	FAILS(INVALID_VALUE, doca_argp_register_version_callback(NULL));
	FAILS(INVALID_VALUE, doca_argp_register_validation_callback(NULL));
	FAILS(INVALID_VALUE, doca_argp_param_create(NULL));
	FAILS(INVALID_VALUE, doca_argp_cmd_create(NULL));
	FAILS(INVALID_VALUE, doca_argp_get_log_level(NULL));
	FAILS(INITIALIZATION, doca_argp_register_param(param(NULL, NULL, DOCA_ARGP_TYPE_INT, on_gid)));
	FAILS(INITIALIZATION, doca_argp_register_param(param("x", NULL, DOCA_ARGP_TYPE_UNKNOWN, on_gid)));
	FAILS(INITIALIZATION, doca_argp_register_param(param("x", NULL, DOCA_ARGP_TYPE_INT, NULL)));
	FAILS(INVALID_VALUE, doca_argp_register_param(NULL));
	device = param("d", NULL, DOCA_ARGP_TYPE_STRING, on_device);
	OK(doca_argp_register_param(device));
	FAILS(BAD_STATE, doca_argp_register_param(device));
	FAILS(BAD_STATE, doca_argp_param_destroy(device));
	FAILS(INVALID_VALUE, doca_argp_param_destroy(NULL));
	OK(doca_argp_param_destroy(param("x", NULL, DOCA_ARGP_TYPE_INT, on_gid)));
	OK(doca_argp_cmd_create(&cmd));
	FAILS(INITIALIZATION, doca_argp_register_cmd(cmd));
	FAILS(INVALID_VALUE, doca_argp_start(0, argv));
	FAILS(INVALID_VALUE, doca_argp_start(1, NULL));
	OK(doca_argp_start(1, argv));
	OK(doca_argp_destroy());
}

int main(void)
{
	states();
	command_lines();
	files();
	CHECK(end_of("--help") == 0);
	CHECK(end_of("-h") == 0);
	CHECK(end_of("--version") == 0);
	CHECK(end_of("-d x") == 101);
	own_version = true;
	CHECK(end_of("-v") == 7);
	return check_summary();
}
