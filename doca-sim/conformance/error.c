/*
 * The names and the descriptions of error codes.
 */
#include "check.h"

#define ROW(name) {DOCA_ERROR_##name, "DOCA_ERROR_" #name}

static const struct {
	doca_error_t code;
	const char *name;
} rows[] = {
	{DOCA_SUCCESS, "DOCA_SUCCESS"},
	ROW(UNKNOWN),
	ROW(NOT_PERMITTED),
	ROW(IN_USE),
	ROW(NOT_SUPPORTED),
	ROW(AGAIN),
	ROW(INVALID_VALUE),
	ROW(NO_MEMORY),
	ROW(INITIALIZATION),
	ROW(TIME_OUT),
	ROW(SHUTDOWN),
	ROW(CONNECTION_RESET),
	ROW(CONNECTION_ABORTED),
	ROW(CONNECTION_INPROGRESS),
	ROW(NOT_CONNECTED),
	ROW(NO_LOCK),
	ROW(NOT_FOUND),
	ROW(IO_FAILED),
	ROW(BAD_STATE),
	ROW(UNSUPPORTED_VERSION),
	ROW(OPERATING_SYSTEM),
	ROW(DRIVER),
	ROW(UNEXPECTED),
	ROW(ALREADY_EXIST),
	ROW(FULL),
	ROW(EMPTY),
	ROW(IN_PROGRESS),
	ROW(TOO_BIG),
	ROW(AUTHENTICATION),
	ROW(BAD_CONFIG),
	ROW(SKIPPED),
};

int main(void)
{
	const char *unknown = doca_error_get_name((doca_error_t)12345);
	size_t i;

	CHECK(unknown != NULL);
	CHECK(strcmp(doca_error_get_descr((doca_error_t)12345), unknown) == 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *description = doca_error_get_descr(rows[i].code);

		CHECK((size_t)rows[i].code == i);
		CHECK(strcmp(doca_error_get_name(rows[i].code), rows[i].name) == 0);
		CHECK(description != NULL && description[0] != '\0' && strcmp(description, unknown) != 0);
		CHECK(description == doca_error_get_descr(rows[i].code));
	}
	CHECK(strcmp(doca_error_get_descr(DOCA_SUCCESS), "Success") == 0);
	return check_summary();
}
