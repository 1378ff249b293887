/*
 * DOCA objects do not survive fork(): the child is refused, does nothing to its parent's objects, and the parent goes on.
 */
#include "side.h"

static struct side left, right;
static struct doca_rdma_connection *to_right, *to_left;

/* In the child, whose memory is a copy but whose adapter is its parent's. */
static int child(struct doca_task *message)
{
	enum doca_ctx_states state;

	checks_failed = 0;
	FAILS(BAD_STATE, doca_task_submit(message));
	for (int i = 0; i < 100; i++)
		CHECK(doca_pe_progress(left.pe) == 0 && doca_pe_progress(right.pe) == 0);
	CHECK(left.succeeded == 0 && right.succeeded == 0);
	FAILS(BAD_STATE, doca_ctx_stop(left.ctx));
	FAILS(BAD_STATE, doca_ctx_get_state(left.ctx, &state));
	FAILS(BAD_STATE, doca_rdma_connection_disconnect(to_right));
	FAILS(BAD_STATE, doca_rdma_create(left.dev, &left.rdma));
	FAILS(BAD_STATE, doca_mmap_destroy(left.map));
	doca_task_free(message);
	return checks_failed;
}

int main(void)
{
	struct doca_buf *from, *to;
	struct doca_task *message;
	int status = -1;
	pid_t pid;

	side_open(&left);
	side_open(&right);
	side_join(&left, &to_right, &right, &to_left);
	to = side_room(&right, 0, 64);
	side_receive(&right, to, 1);
	from = side_data(&left, 0, 64);
	message = side_message(&left, to_right, from, 2);

	/* Once with exit handlers and once without: neither touches what is the parent's. */
	for (int gently = 0; gently < 2; gently++) {
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			status = child(message);
			if (gently)
				exit(status);
			_exit(status);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}

	strcpy(left.memory, "still here");
	OK(doca_task_submit(message));
	UNTIL(&left, left.succeeded == 1);
	UNTIL(&right, right.succeeded == 1);
	CHECK(strcmp(right.memory, "still here") == 0);
	put(from);
	put(to);
	side_close(&left);
	side_close(&right);
	return check_summary();
}
