//! What processes share: the network directory, each process's adapter in shared memory, registered
//! regions, queues and mailboxes. Nothing above this module touches another process.

pub mod descriptor;
pub mod region;
