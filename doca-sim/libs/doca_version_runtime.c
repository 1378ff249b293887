/*
 * The release that this library claims to be: the one of the headers that it was compiled with.
 * Included by the generated source of libdoca_common.
 */
const char *doca_version_runtime(void)
{
	return DOCA_VERSION_STRING;
}
