/*
 * The release that this library claims to be: the one of the headers that it was compiled with, unless the engine was
 * asked to report another. Included by the generated source of libdoca_common.
 */
const char *sim_version_runtime(const char *own);

const char *doca_version_runtime(void)
{
	return sim_version_runtime(DOCA_VERSION_STRING);
}
