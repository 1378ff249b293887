/*
 * A second process: this program again, with a role as its argument, and a socket between the two.
 * Every wait has a deadline, and a peer dies with the process that started it.
 */
#ifndef PEER_H
#define PEER_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define PATIENCE_MS 20000
/* Where a peer finds its end of the socket. */
#define PEER_SOCKET 3

struct peer {
	pid_t pid;
	int socket;
};

static inline uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A test that cannot go on: everything it would wait for is lost. */
static inline void give_up(const char *what)
{
	fprintf(stderr, "cannot go on: %s\n", what);
	exit(1);
}

static inline struct peer peer_start(const char *role)
{
	struct peer peer;
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		give_up("socketpair");
	peer.socket = ends[0];
	fflush(NULL);
	peer.pid = fork();
	if (peer.pid < 0)
		give_up("fork");
	if (peer.pid == 0) {
		/* The kernel tells of a death from now on; one that came before is seen by the parent's number. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		/* The same number on both sides would keep close-on-exec. */
		if (ends[1] == PEER_SOCKET)
			ends[1] = dup(ends[1]);
		if (dup2(ends[1], PEER_SOCKET) != PEER_SOCKET)
			_exit(1);
		execl(check_program(), check_program(), role, (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	return peer;
}

/* The same on the DPU's side. */
static inline struct peer peer_start_on_dpu(const char *role)
{
	struct peer peer;

	setenv("DOCA_SIM_SIDE", "dpu", 1);
	peer = peer_start(role);
	unsetenv("DOCA_SIM_SIDE");
	return peer;
}

static inline void tell(int socket, const void *data, size_t len)
{
	if (send(socket, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		give_up("the other process does not listen");
}

/* The length of what came; gives up at the deadline and when the other process is gone. */
static inline size_t hear(int socket, void *data, size_t size)
{
	struct pollfd waited = {.fd = socket, .events = POLLIN};
	ssize_t len;

	if (poll(&waited, 1, PATIENCE_MS) != 1)
		give_up("the other process says nothing");
	len = recv(socket, data, size, 0);
	if (len <= 0)
		give_up("the other process is gone");
	return (size_t)len;
}

/* One word, for turn-taking. */
static inline void tell_word(int socket, uint64_t word)
{
	tell(socket, &word, sizeof(word));
}

static inline uint64_t hear_word(int socket)
{
	uint64_t word = 0;

	if (hear(socket, &word, sizeof(word)) != sizeof(word))
		give_up("something else than a word");
	return word;
}

/* The peer must end by itself, and well. */
static inline void peer_finish(struct peer *peer)
{
	struct pollfd waited = {.fd = peer->socket, .events = POLLIN};
	int status = -1;

	/* It closes its end by ending. */
	if (poll(&waited, 1, PATIENCE_MS) != 1)
		kill(peer->pid, SIGKILL);
	waitpid(peer->pid, &status, 0);
	check_result(WIFEXITED(status) && WEXITSTATUS(status) == 0, __FILE__, __LINE__, "the peer ends well");
	close(peer->socket);
}

/* Sudden death, seen to the end. */
static inline void peer_kill(struct peer *peer)
{
	int status;

	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, &status, 0);
	close(peer->socket);
}

#endif
