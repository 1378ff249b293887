/* Public headers of libdoca_sta. Its headers use bool without including the header that defines it. */
#include <stdbool.h>
#include <doca_sta.h>
#include <doca_sta_be.h>
#include <doca_sta_event.h>
#include <doca_sta_handle.h>
#include <doca_sta_io.h>
#include <doca_sta_io_non_offload.h>
#include <doca_sta_io_qp.h>
#include <doca_sta_mem.h>
#include <doca_sta_stats.h>
#include <doca_sta_subsystem.h>
#include <doca_sta_task.h>
