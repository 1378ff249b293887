/*
 * doca_build_config.h: this SDK is for the Arm cores of a DPU.
 */
#ifndef DOCA_BUILD_CONFIG_H_
#define DOCA_BUILD_CONFIG_H_

#define DOCA_ARCH_DPU
#define DOCA_ARCH_ARM

#endif /* DOCA_BUILD_CONFIG_H_ */
