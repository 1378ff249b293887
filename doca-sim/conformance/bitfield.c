/*
 * Byte order and fields of bits: a mask names a field, and what is set can be got back.
 */
#include "check.h"

#include <doca_bitfield.h>

static void byte_order(void)
{
	const uint8_t two[] = {0x12, 0x34}, four[] = {0x12, 0x34, 0x56, 0x78};
	doca_be16_t be16 = DOCA_HTOBE16(0x1234);
	doca_be32_t be32 = DOCA_HTOBE32(0x12345678);

	CHECK(memcmp(&be16, two, sizeof(two)) == 0);
	CHECK(memcmp(&be32, four, sizeof(four)) == 0);
	CHECK(DOCA_BETOH16(be16) == 0x1234);
	CHECK(DOCA_BETOH32(be32) == 0x12345678);
}

static void masks(void)
{
	uint8_t u8 = 0;
	doca_be16_t be16 = 0;
	doca_be32_t be32 = 0;

	CHECK(DOCA_SHIFT(1) == 0 && DOCA_SHIFT(0x30) == 4);
	CHECK(DOCA_U8_GENMASK(7, 0) == 0xff && DOCA_U8_GENMASK(5, 4) == 0x30);
	CHECK(DOCA_BE16_GENMASK(15, 0) == 0xffff && DOCA_BE16_GENMASK(11, 4) == DOCA_HTOBE16(0x0ff0));
	CHECK(DOCA_BE32_GENMASK(31, 0) == 0xffffffff && DOCA_BE32_GENMASK(23, 20) == DOCA_HTOBE32(0x00f00000));
	DOCA_U8P_GENMASK(5, 4, &u8);
	DOCA_BE16P_GENMASK(11, 4, &be16);
	DOCA_BE32P_GENMASK(23, 20, &be32);
	CHECK(u8 == 0x30 && be16 == DOCA_HTOBE16(0x0ff0) && be32 == DOCA_HTOBE32(0x00f00000));
}

static void fields(void)
{
	uint8_t u8 = 0x81;
	doca_be16_t be16 = DOCA_HTOBE16(0xf00f), mask16 = DOCA_BE16_GENMASK(11, 4);
	doca_be32_t be32 = DOCA_HTOBE32(0xff00000f), mask32 = DOCA_BE32_GENMASK(23, 20);

	CHECK(DOCA_U8_SET(0x30, 2) == 0x20 && DOCA_U8_GET(0x30, 0xef) == 2);
	CHECK(DOCA_U8_SET(0x30, 7) == 0x30);
	CHECK(DOCA_BE16_SET(mask16, 0xa5) == DOCA_HTOBE16(0x0a50));
	CHECK(DOCA_BE32_SET(mask32, 0x9) == DOCA_HTOBE32(0x00900000));

	DOCA_U8P_SET(0x30, 2, &u8);
	DOCA_BE16P_SET(mask16, 0xa5, &be16);
	DOCA_BE32P_SET(mask32, 0x9, &be32);
	CHECK(u8 == 0xa1 && be16 == DOCA_HTOBE16(0xfa5f) && be32 == DOCA_HTOBE32(0xff90000f));
	CHECK(DOCA_BE16_GET(mask16, be16) == 0xa5);
	CHECK(DOCA_BE32_GET(mask32, be32) == 0x9);
}

int main(void)
{
	byte_order();
	masks();
	fields();
	return check_summary();
}
