/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Byte order, and fields of some bits in numbers of one byte or in big-endian numbers.
 *
 * A field is named by its mask, which for the BE macros is big-endian as the number itself is. Bits count
 * from 0, the least significant one.
 */

#ifndef DOCA_BITFIELD_H_
#define DOCA_BITFIELD_H_

#include <stdint.h>
#include <arpa/inet.h>
#include <doca_types.h>

/* Where a mask begins: the number of its lowest bit. */
#define DOCA_SHIFT(mask) (__builtin_ffsll(mask) - 1)

/* From the order of this machine to big-endian, and back. */
#define DOCA_HTOBE16(value) htons(value)
#define DOCA_HTOBE32(value) htonl(value)
#define DOCA_BETOH16(value) ntohs(value)
#define DOCA_BETOH32(value) ntohl(value)

/* The mask of the bits from `low` to `high`, both included. */
#define DOCA_U8_GENMASK(high, low) ((uint8_t)((UINT8_MAX << (low)) & (UINT8_MAX >> (7 - (high)))))
#define DOCA_BE16_GENMASK(high, low) \
	(DOCA_HTOBE16((uint16_t)((UINT16_MAX << (low)) & (UINT16_MAX >> (15 - (high))))))
#define DOCA_BE32_GENMASK(high, low) \
	(DOCA_HTOBE32((uint32_t)((UINT32_MAX << (low)) & (UINT32_MAX >> (31 - (high))))))

/* The same, written to where `pointer` points. */
#define DOCA_U8P_GENMASK(high, low, pointer) \
	do { \
		*(uint8_t *)(pointer) = DOCA_U8_GENMASK(high, low); \
	} while (0)
#define DOCA_BE16P_GENMASK(high, low, pointer) \
	do { \
		*(doca_be16_t *)(pointer) = DOCA_BE16_GENMASK(high, low); \
	} while (0)
#define DOCA_BE32P_GENMASK(high, low, pointer) \
	do { \
		*(doca_be32_t *)(pointer) = DOCA_BE32_GENMASK(high, low); \
	} while (0)

/* A number whose field is `value` (in the order of this machine), all other bits being 0. */
#define DOCA_U8_SET(mask, value) (((value) << DOCA_SHIFT(mask)) & (mask))
#define DOCA_BE16_SET(mask, value) (DOCA_HTOBE16((value) << DOCA_SHIFT(DOCA_BETOH16(mask))) & (mask))
#define DOCA_BE32_SET(mask, value) (DOCA_HTOBE32((value) << DOCA_SHIFT(DOCA_BETOH32(mask))) & (mask))

/* The same, added to the number at `pointer`, where the field has to be 0. */
#define DOCA_U8P_SET(mask, value, pointer) \
	do { \
		*(uint8_t *)(pointer) |= DOCA_U8_SET(mask, value); \
	} while (0)
#define DOCA_BE16P_SET(mask, value, pointer) \
	do { \
		*(doca_be16_t *)(pointer) |= DOCA_BE16_SET(mask, value); \
	} while (0)
#define DOCA_BE32P_SET(mask, value, pointer) \
	do { \
		*(doca_be32_t *)(pointer) |= DOCA_BE32_SET(mask, value); \
	} while (0)

/* The field of a number, in the order of this machine. */
#define DOCA_U8_GET(mask, number) (((number) & (mask)) >> DOCA_SHIFT(mask))
#define DOCA_BE16_GET(mask, number) (DOCA_BETOH16((number) & (mask)) >> DOCA_SHIFT(DOCA_BETOH16(mask)))
#define DOCA_BE32_GET(mask, number) (DOCA_BETOH32((number) & (mask)) >> DOCA_SHIFT(DOCA_BETOH32(mask)))

#endif /* DOCA_BITFIELD_H_ */
