/*
 * A logger takes a va_list, which only C can make: the engine hands over a text, and the function with which to
 * call the logger comes from here. Included by the generated source of libdoca_argp.
 */
#include <stdarg.h>

typedef void (*argp_logger)(void);

doca_error_t sim_doca_argp_register_logger_callback(argp_logger callback,
						    void (*call)(argp_logger, uint32_t, const char *));

static void argp_log(doca_argp_logger_cb_t callback, enum doca_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)callback(level, format, args);
	va_end(args);
}

static void argp_log_text(argp_logger callback, uint32_t level, const char *text)
{
	argp_log((doca_argp_logger_cb_t)callback, (enum doca_log_level)level, "%s", text);
}

doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback)
{
	return sim_doca_argp_register_logger_callback((argp_logger)callback, argp_log_text);
}
