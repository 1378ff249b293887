/*
 * Comch before messages: capabilities, configuration and its errors, states, names, servers that are not there, are
 * full, or refuse.
 */
#include <doca_comch_consumer.h>
#include <doca_comch_msgq.h>
#include <doca_comch_producer.h>

#include "comch.h"

typedef doca_error_t (*limit)(const struct doca_devinfo *, uint32_t *);
typedef doca_error_t (*ability)(const struct doca_devinfo *);

static const limit limits[] = {
	doca_comch_cap_get_max_name_len,
	doca_comch_cap_get_max_msg_size,
	doca_comch_cap_get_max_recv_queue_size,
	doca_comch_cap_get_max_clients,
	doca_comch_cap_get_max_send_tasks,
	doca_comch_consumer_cap_get_max_num_tasks,
	doca_comch_consumer_cap_get_max_buf_size,
	doca_comch_consumer_cap_get_max_buf_list_len,
	doca_comch_consumer_cap_get_max_consumers,
	doca_comch_consumer_cap_get_max_imm_data_len,
	doca_comch_producer_cap_get_max_num_tasks,
	doca_comch_producer_cap_get_max_buf_size,
	doca_comch_producer_cap_get_max_buf_list_len,
	doca_comch_producer_cap_get_max_producers,
};

static const ability abilities[] = {doca_comch_cap_client_is_supported, doca_comch_consumer_cap_is_supported,
				    doca_comch_producer_cap_is_supported};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void capabilities(struct doca_dev *dev)
{
	const struct doca_devinfo *info = doca_dev_as_devinfo(dev);
	uint32_t value;

	for (size_t i = 0; i < COUNT(limits); i++) {
		value = 0;
		FAILS(INVALID_VALUE, limits[i](NULL, &value));
		FAILS(INVALID_VALUE, limits[i](info, NULL));
		OK(limits[i](info, &value));
		CHECK(value > 0);
	}
	for (size_t i = 0; i < COUNT(abilities); i++) {
		FAILS(INVALID_VALUE, abilities[i](NULL));
		OK(abilities[i](info));
	}
	FAILS(INVALID_VALUE, doca_comch_cap_server_is_supported(NULL));
	/* Servers are for the other side. */
	FAILS(NOT_SUPPORTED, doca_comch_cap_server_is_supported(info));
}

/* Nobody has a DPA here. */
static void for_the_dpa(struct doca_dev *dev)
{
	struct doca_comch_msgq *queue = NULL;
	struct doca_comch_consumer_completion *completion = NULL;

	FAILS(NOT_SUPPORTED, doca_comch_msgq_create(dev, &queue));
	FAILS(NOT_SUPPORTED, doca_comch_consumer_completion_create(&completion));
}

static void configuration(struct end *end)
{
	const struct doca_devinfo *info = doca_dev_as_devinfo(end->dev);
	struct doca_comch_client *other = NULL;
	struct doca_comch_server *server = NULL;
	struct doca_comch_connection *connection = NULL;
	struct doca_comch_task_send *task = NULL;
	struct doca_dev *dev = NULL;
	char name[512];
	uint32_t most, value;

	OK(doca_comch_cap_get_max_name_len(info, &most));
	memset(name, 'n', sizeof(name));
	name[most] = '\0';
	FAILS(INVALID_VALUE, doca_comch_client_create(end->dev, name, &other));
	name[most - 1] = '\0';
	OK(doca_comch_client_create(end->dev, name, &other));
	OK(doca_comch_client_destroy(other));
	FAILS(INVALID_VALUE, doca_comch_client_create(NULL, "x", &other));
	FAILS(INVALID_VALUE, doca_comch_client_create(end->dev, NULL, &other));
	FAILS(INVALID_VALUE, doca_comch_client_create(end->dev, "", &other));
	FAILS(INVALID_VALUE, doca_comch_client_create(end->dev, "x", NULL));
	FAILS(INVALID_VALUE, doca_comch_client_destroy(NULL));
	FAILS(INVALID_VALUE, doca_comch_server_create(end->dev, NULL, "x", &server));
	FAILS(INVALID_VALUE, doca_comch_server_destroy(NULL));
	FAILS(INVALID_VALUE, doca_comch_server_disconnect(NULL, NULL));
	/* A client is no server. */
	FAILS(INVALID_VALUE, doca_comch_server_destroy((struct doca_comch_server *)end->client));

	OK(doca_comch_client_get_device(end->client, &dev));
	CHECK(dev == end->dev);
	FAILS(INVALID_VALUE, doca_comch_client_get_device(end->client, NULL));

	OK(doca_comch_cap_get_max_msg_size(info, &most));
	FAILS(INVALID_VALUE, doca_comch_client_set_max_msg_size(end->client, 0));
	FAILS(INVALID_VALUE, doca_comch_client_set_max_msg_size(end->client, most + 1));
	FAILS(INVALID_VALUE, doca_comch_client_set_max_msg_size(NULL, 1));
	FAILS(INVALID_VALUE, doca_comch_client_get_max_msg_size(end->client, NULL));
	OK(doca_comch_client_set_max_msg_size(end->client, most));
	OK(doca_comch_client_get_max_msg_size(end->client, &value));
	CHECK(value == most);

	OK(doca_comch_cap_get_max_recv_queue_size(info, &most));
	FAILS(INVALID_VALUE, doca_comch_client_set_recv_queue_size(end->client, 0));
	FAILS(INVALID_VALUE, doca_comch_client_set_recv_queue_size(end->client, most + 1));
	OK(doca_comch_client_set_recv_queue_size(end->client, 10));
	OK(doca_comch_client_get_recv_queue_size(end->client, &value));
	CHECK(value == 10);

	OK(doca_comch_cap_get_max_send_tasks(info, &most));
	FAILS(INVALID_VALUE, doca_comch_client_task_send_set_conf(end->client, end_sent, end_not_sent, 0));
	FAILS(INVALID_VALUE, doca_comch_client_task_send_set_conf(end->client, end_sent, end_not_sent, most + 1));
	FAILS(INVALID_VALUE, doca_comch_client_task_send_set_conf(end->client, NULL, end_not_sent, 1));
	FAILS(INVALID_VALUE, doca_comch_client_task_send_set_conf(end->client, end_sent, NULL, 1));
	FAILS(INVALID_VALUE, doca_comch_client_event_msg_recv_register(end->client, NULL));
	FAILS(INVALID_VALUE, doca_comch_client_event_consumer_register(end->client, NULL, end_expired_consumer));
	FAILS(INVALID_VALUE, doca_comch_client_event_consumer_register(end->client, end_new_consumer, NULL));

	/* Not started. */
	FAILS(BAD_STATE, doca_comch_client_get_connection(end->client, &connection));
	FAILS(INVALID_VALUE, doca_comch_client_get_connection(end->client, NULL));
	FAILS(INVALID_VALUE, doca_comch_client_task_send_alloc_init(end->client, NULL, "x", 1, &task));
	FAILS(INVALID_VALUE, doca_comch_connection_update_info(NULL));
	CHECK(doca_comch_connection_get_user_data(NULL).u64 == 0);
	CHECK(doca_comch_server_get_server_ctx(NULL) == NULL && doca_comch_client_get_client_ctx(NULL) == NULL);
	CHECK(doca_comch_client_as_ctx(NULL) == NULL && doca_comch_server_as_ctx(NULL) == NULL);
}

/* Nobody serves that name: a while in STARTING, and no connection. */
static void no_server(void)
{
	const int failed[] = {1, 1 * 4 + 3, 3 * 4, -1};
	struct end end;

	client_create(&end, "nobody");
	for (int round = 0; round < 2; round++) {
		client_start(&end);
		UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
		CHECK(end_went(&end, failed));
	}
	/* A stop while it is starting. */
	FAILS(IN_PROGRESS, doca_ctx_start(end.ctx));
	FAILS(IN_USE, doca_comch_client_destroy(end.client));
	FAILS(BAD_STATE, doca_comch_client_set_max_msg_size(end.client, 1));
	end_stop(&end);
	end_close(&end);
}

/* In the server's process. */
static doca_error_t more(struct end *end, const struct ask *ask)
{
	struct doca_comch_server *second = NULL;
	struct doca_dev *dev = NULL, *other_dev;
	struct doca_dev_rep *rep = NULL;
	uint32_t value;

	(void)ask;
	FAILS(INVALID_VALUE, doca_comch_server_create(NULL, end->rep, "x", &second));
	FAILS(INVALID_VALUE, doca_comch_server_create(end->dev, NULL, "x", &second));
	FAILS(INVALID_VALUE, doca_comch_server_create(end->dev, end->rep, NULL, &second));
	FAILS(INVALID_VALUE, doca_comch_server_create(end->dev, end->rep, "x", NULL));
	OK(doca_comch_server_get_device(end->server, &dev));
	OK(doca_comch_server_get_device_rep(end->server, &rep));
	CHECK(dev == end->dev && rep == end->rep);
	OK(doca_comch_cap_server_is_supported(doca_dev_as_devinfo(dev)));
	FAILS(NOT_SUPPORTED, doca_comch_cap_client_is_supported(doca_dev_as_devinfo(dev)));
	/* Running: nothing can be configured any more, and nothing goes. */
	FAILS(BAD_STATE, doca_comch_server_set_max_msg_size(end->server, 1));
	FAILS(BAD_STATE, doca_comch_server_set_recv_queue_size(end->server, 1));
	FAILS(BAD_STATE, doca_comch_server_task_send_set_conf(end->server, end_sent, end_not_sent, 1));
	FAILS(BAD_STATE, doca_comch_server_event_msg_recv_register(end->server, end_received));
	FAILS(BAD_STATE, doca_comch_server_event_connection_status_changed_register(end->server, end_connected,
										    end_disconnected));
	FAILS(BAD_STATE, doca_comch_server_event_consumer_register(end->server, end_new_consumer,
								   end_expired_consumer));
	FAILS(IN_USE, doca_comch_server_destroy(end->server));
	FAILS(IN_USE, doca_dev_rep_close(end->rep));
	OK(doca_comch_server_get_max_msg_size(end->server, &value));
	OK(doca_comch_server_get_recv_queue_size(end->server, &value));

	/* One server of a name and representor. */
	OK(doca_comch_server_create(end->dev, end->rep, "name", &second));
	FAILS(NOT_CONNECTED, doca_ctx_start(doca_comch_server_as_ctx(second)));
	OK(doca_pe_connect_ctx(end->pe, doca_comch_server_as_ctx(second)));
	FAILS(INITIALIZATION, doca_ctx_start(doca_comch_server_as_ctx(second)));
	OK(doca_comch_server_destroy(second));

	/* The same name for another function. */
	other_dev = open_device("mlx5_1");
	rep = open_rep(other_dev, "3b:00.1");
	FAILS(INVALID_VALUE, doca_comch_server_create(end->dev, rep, "name", &second));
	OK(doca_comch_server_create(other_dev, rep, "name", &second));
	OK(doca_pe_connect_ctx(end->pe, doca_comch_server_as_ctx(second)));
	OK(doca_ctx_start(doca_comch_server_as_ctx(second)));
	OK(doca_ctx_stop(doca_comch_server_as_ctx(second)));
	OK(doca_comch_server_destroy(second));
	OK(doca_dev_rep_close(rep));
	OK(doca_dev_close(other_dev));

	/* A client on this side. */
	{
		struct doca_comch_client *client = NULL;

		OK(doca_comch_client_create(end->dev, "name", &client));
		OK(doca_pe_connect_ctx(end->pe, doca_comch_client_as_ctx(client)));
		FAILS(NOT_SUPPORTED, doca_ctx_start(doca_comch_client_as_ctx(client)));
		OK(doca_comch_client_destroy(client));
	}
	return checks_failed ? DOCA_ERROR_UNEXPECTED : DOCA_SUCCESS;
}

static void with_a_server(void)
{
	const int up[] = {1, 1 * 4 + 2, -1}, down[] = {2 * 4 + 3, 3 * 4, -1};
	struct doca_comch_connection *connection = NULL;
	struct peer peer = server_start();
	struct end end;

	CHECK(order(NULL, &peer, MORE, 0, 0).result == DOCA_SUCCESS);
	client_create(&end, "name");
	client_start(&end);
	CHECK(end_went(&end, up));
	SEES(&end, &peer, seen.connected == 1);
	CHECK(doca_comch_client_get_client_ctx(end.connection) == end.client);
	CHECK(doca_comch_server_get_server_ctx(end.connection) == NULL);
	FAILS(BAD_STATE, doca_comch_client_set_recv_queue_size(end.client, 1));
	FAILS(BAD_STATE, doca_comch_client_event_msg_recv_register(end.client, end_received));
	FAILS(IN_USE, doca_comch_client_destroy(end.client));
	end_stop(&end);
	CHECK(end_went(&end, down));
	FAILS(BAD_STATE, doca_comch_client_get_connection(end.client, &connection));
	SEES(&end, &peer, seen.disconnected == 1);

	/* Again with the same object. */
	client_start(&end);
	CHECK(end_went(&end, up));
	SEES(&end, &peer, seen.connected == 2);

	/* The server stops: the client falls. */
	order(&end, &peer, STOP, 0, 0);
	UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
	CHECK(end_went(&end, down));

	/* It starts again, and throws clients out as they come: nobody tells it that they have gone. */
	CHECK(order(&end, &peer, START, 0, 0).result == DOCA_SUCCESS);
	order(&end, &peer, REJECT, 1, 0);
	client_start(&end);
	UNTIL(&end, end_is(&end, DOCA_CTX_STATE_IDLE));
	SEES(&end, &peer, seen.connected == 1 && seen.disconnected == 0);
	order(&end, &peer, REJECT, 0, 0);

	end_close(&end);
	server_finish(NULL, &peer);
}

/* A server that takes one client. */
static void full(void)
{
	static const char topology[] =
		"{\"extends\": \"default\", \"dpu\": {\"mlx5_0\": {\"comch\": {\"max_clients\": 1}}}}";
	char path[] = "/tmp/comch-topology-XXXXXX";
	struct end first, second;
	struct peer peer;
	int file = mkstemp(path);

	CHECK(write(file, topology, strlen(topology)) == (ssize_t)strlen(topology));
	close(file);
	setenv("DOCA_SIM_TOPOLOGY", path, 1);
	peer = server_start();
	unsetenv("DOCA_SIM_TOPOLOGY");
	unlink(path);
	client_create(&first, "name");
	client_create(&second, "name");
	client_start(&first);
	client_start(&second);
	UNTIL(&second, end_is(&second, DOCA_CTX_STATE_IDLE));
	SEES(&first, &peer, seen.connected == 1 && seen.refused == 1);
	end_stop(&first);
	SEES(NULL, &peer, seen.disconnected == 1);
	client_start(&second);
	CHECK(end_is(&second, DOCA_CTX_STATE_RUNNING));
	end_close(&second);
	end_close(&first);
	server_finish(NULL, &peer);
}

int main(int argc, char **argv)
{
	struct end end;

	(void)argv;
	if (argc > 1)
		return server_main("name", more);
	client_create(&end, "name");
	capabilities(end.dev);
	for_the_dpa(end.dev);
	configuration(&end);
	end_close(&end);
	no_server();
	with_a_server();
	full();
	return check_summary();
}
