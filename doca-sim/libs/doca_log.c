/*
 * doca_log takes its arguments as printf does, so it is formatted here, in C; the engine gets the text.
 * Included by the generated source of libdoca_common.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

doca_error_t sim_doca_log(uint32_t level, int source, const char *fname, int line, const char *func, const char *text);

doca_error_t doca_log(uint32_t level, int source, const char *fname, int line, const char *func, const char *format,
		      ...)
{
	char small[512];
	char *text = small;
	va_list args;
	int length;
	doca_error_t result;

	if (format == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	va_start(args, format);
	length = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	if (length < 0)
		return DOCA_ERROR_INVALID_VALUE;
	if ((size_t)length >= sizeof(small)) {
		text = malloc((size_t)length + 1);
		if (text == NULL)
			return DOCA_ERROR_NO_MEMORY;
		va_start(args, format);
		vsnprintf(text, (size_t)length + 1, format, args);
		va_end(args);
	}
	result = sim_doca_log(level, source, fname, line, func, text);
	if (text != small)
		free(text);
	return result;
}
