/*
 * A target to try the initiator on: the small one of the conformance programs with a controller on top. It serves until its
 * standard input ends.
 */
#include "../../conformance/sta_target.h"

#define PROPERTY_SET 0
#define PROPERTY_GET 4
#define SET_FEATURES 0x09
#define GET_FEATURES 0x0a
#define EVENT_REQUEST 0x0c
#define KEEP_ALIVE 0x18
#define INVALID_FIELD 0x4002

static uint32_t configuration;

static void property_get(struct handled *handled)
{
	switch (get32(handled->command + 44)) {
	case 0x00:
		put64(handled->answer, 31 | 1 << 16 | 20u << 24 | 1ull << 37);
		break;
	case 0x08:
		put32(handled->answer, 0x10300);
		break;
	case 0x14:
		put32(handled->answer, configuration);
		break;
	case 0x1c:
		put32(handled->answer, (configuration & 1) | ((configuration >> 14 & 3) != 0 ? 8 : 0));
		break;
	default:
		answer(handled, 0x4182, 0);
		return;
	}
	answer(handled, 0, 0);
}

static void identify(struct handled *handled)
{
	uint8_t *page = handled->payload;
	uint32_t nsid = get32(handled->command + 4);

	memset(page, 0, 4096);
	switch (handled->command[40]) {
	case 0:
		if (nsid != 1) {
			answer(handled, 0x400b, 0);
			return;
		}
		put64(page, BLOCKS);
		put64(page + 8, BLOCKS);
		page[128 + 2] = 9;
		break;
	case 1:
		memset(page + 4, ' ', 68);
		memcpy(page + 4, "TEST", 4);
		page[77] = 5;
		put16(page + 78, 1);
		put32(page + 80, 0x10300);
		put16(page + 320, 100);
		page[512] = 0x66;
		page[513] = 0x44;
		put16(page + 514, 32);
		put32(page + 516, 1);
		put32(page + 536, 1 | 1 << 2 | 1 << 20);
		strcpy((char *)page + 768, NQN);
		put32(page + 1792, 260);
		put32(page + 1796, 1);
		page[1803] = 1;
		break;
	case 2:
		put32(page, nsid < 1);
		break;
	default:
		answer(handled, INVALID_FIELD, 0);
		return;
	}
	answer(handled, 0, 1);
}

static int admin_command(struct handled *handled)
{
	const uint8_t *command = handled->command;

	switch (command[0]) {
	case NVME_FABRICS:
		if (command[4] == PROPERTY_SET)
			configuration = (uint32_t)get64(command + 48);
		if (command[4] == PROPERTY_GET)
			property_get(handled);
		else
			answer(handled, command[4] == PROPERTY_SET ? 0 : 0x4001, 0);
		return 1;
	case NVME_IDENTIFY:
		identify(handled);
		return 1;
	case SET_FEATURES:
	case GET_FEATURES:
		put32(handled->answer, 0x00010001);
		answer(handled, command[40] == 7 ? 0 : INVALID_FIELD, 0);
		return 1;
	case EVENT_REQUEST:
		put32(handled->answer, 0x00040002);
		answer(handled, 0, 0);
		return 1;
	case KEEP_ALIVE:
		answer(handled, 0, 0);
		return 1;
	default:
		return 0;
	}
}

int main(void)
{
	target_other = admin_command;
	target_open();
	printf("ready\n");
	fflush(stdout);
	serve(0);
	SERVE_UNTIL(num_connections() == 0);
	target_close();
	return check_summary();
}
