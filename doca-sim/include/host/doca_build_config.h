/*
 * doca_build_config.h: this SDK is for a host.
 */
#ifndef DOCA_BUILD_CONFIG_H_
#define DOCA_BUILD_CONFIG_H_

#define DOCA_ARCH_HOST
#define DOCA_ARCH_X86

#endif /* DOCA_BUILD_CONFIG_H_ */
