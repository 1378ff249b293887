/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Comch message queues between host and DPA. The simulator has no DPA: all is NOT_SUPPORTED. */

#ifndef DOCA_COMCH_MSGQ_H_
#define DOCA_COMCH_MSGQ_H_

#include <stddef.h>
#include <stdint.h>
#include <doca_compat.h>
#include <doca_error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects of the library, known by pointer only. */
struct doca_comch_msgq;

/* Declared elsewhere. */
struct doca_dev;
struct doca_dpa;
struct doca_comch_consumer;
struct doca_comch_producer;

/* A queue on a device. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_create(struct doca_dev *dev, struct doca_comch_msgq **msgq);

/* Of a queue that is not started. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_destroy(struct doca_comch_msgq *msgq);

/* Consumers run on this DPA. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_dpa_consumer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa);

/* Most consumers. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_max_num_consumers(struct doca_comch_msgq *msgq, uint32_t max_num_consumers);

/* Producers run on this DPA. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_dpa_producer(struct doca_comch_msgq *msgq, struct doca_dpa *dpa);

/* Most producers. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_set_max_num_producers(struct doca_comch_msgq *msgq, uint32_t max_num_producers);

/* From here on producers and consumers can be made. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_start(struct doca_comch_msgq *msgq);

/* Not while there are producers or consumers. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_stop(struct doca_comch_msgq *msgq);

/* A consumer of a started queue. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_consumer_create(
	struct doca_comch_msgq *msgq,
	struct doca_comch_consumer **consumer);

/* A producer of a started queue. */
DOCA_EXPERIMENTAL
doca_error_t doca_comch_msgq_producer_create(
	struct doca_comch_msgq *msgq,
	struct doca_comch_producer **producer);

#ifdef __cplusplus
}
#endif

#endif /* DOCA_COMCH_MSGQ_H_ */
