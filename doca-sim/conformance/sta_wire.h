/*
 * Bytes of NVMe over Fabrics that both sides of the storage programs know, and where the target is.
 */
#ifndef STA_WIRE_H
#define STA_WIRE_H

#include <stdint.h>

#define TARGET "192.168.1.1"
#define PORT 4420
#define NQN "nqn.2026-01.org.example:disk"

enum { NVME_FLUSH = 0x00, NVME_WRITE = 0x01, NVME_READ = 0x02, NVME_IDENTIFY = 0x06, NVME_FABRICS = 0x7f };
enum { FABRICS_CONNECT = 0x01 };
/* Types of descriptors. */
enum { SGL_IN_CAPSULE = 0x01, SGL_KEYED = 0x40, SGL_KEYED_INVALIDATE = 0x4f, SGL_LAST_SEGMENT = 0x31 };

static inline void put_number(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static inline uint64_t get_number(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

#define NUMBER(bits)                                                 \
	static inline void put##bits(uint8_t *at, uint##bits##_t value) \
	{                                                            \
		put_number(at, value, bits / 8);                     \
	}                                                            \
	static inline uint##bits##_t get##bits(const uint8_t *at)    \
	{                                                            \
		return (uint##bits##_t)get_number(at, bits / 8);     \
	}

NUMBER(16)
NUMBER(32)
NUMBER(64)

#endif
