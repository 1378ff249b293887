/*
 * One engine, several threads: a lock of the program's own around its calls is all that DOCA asks for. Engines,
 * contexts, tasks and buffers change hands with it.
 */
#include "side.h"

#include <pthread.h>

#define THREADS 4
#define MESSAGES 400
#define SIZE 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct side from, to;
static struct doca_rdma_connection *connection;
static int sent;

/* Sends one message at a time under the lock, until all are sent. The threads take turns. */
static void *take_turns(void *unused)
{
	(void)unused;
	for (;;) {
		size_t at;
		struct doca_buf *room, *data;

		pthread_mutex_lock(&lock);
		if (sent == MESSAGES) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		at = (size_t)(sent % TASKS) * SIZE;
		memcpy(from.memory + at, &sent, sizeof(sent));
		room = side_room(&to, at, SIZE);
		data = side_data(&from, at, SIZE);
		side_receive(&to, room, (uint64_t)sent);
		side_send(&from, connection, data, (uint64_t)sent);
		UNTIL(&from, from.succeeded + from.failed > sent);
		UNTIL(&to, to.succeeded + to.failed > sent);
		CHECK(to.task_data == (uint64_t)sent && to.result_len == SIZE);
		CHECK(memcmp(to.memory + at, &sent, sizeof(sent)) == 0);
		put(room);
		put(data);
		sent++;
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
}

int main(void)
{
	struct doca_rdma_connection *back;
	pthread_t threads[THREADS];
	int i;

	side_open(&from);
	side_open(&to);
	side_join(&from, &connection, &to, &back);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, take_turns, NULL) == 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(from.succeeded == MESSAGES && to.succeeded == MESSAGES);
	CHECK(from.failed == 0 && to.failed == 0);
	side_close(&from);
	side_close(&to);
	return check_summary();
}
