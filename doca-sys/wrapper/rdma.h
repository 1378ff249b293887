/* Public headers of libdoca_rdma, and the RDMA bridge of libdoca_common, which needs verbs. */
#include <doca_rdma.h>
#include <doca_rdma_bridge.h>
