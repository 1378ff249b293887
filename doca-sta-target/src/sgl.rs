//! What descriptors of a command's data may be.

use nvme_wire::{Direction, SglKind, Sqe, Status};

/// Refuses a descriptor that a transport which moves `room` bytes cannot serve. Commands without data are not looked at.
pub(crate) fn check(sqe: &Sqe, room: usize) -> Option<Status> {
    let len = match (sqe.direction(), sqe.sgl().kind()) {
        (Direction::None, _) => return None,
        (Direction::Both, _) => return Some(Status::INVALID_OPCODE),
        (_, SglKind::Keyed { len, .. }) => len,
        (Direction::ToController, SglKind::InCapsule { offset: 0, len }) => len,
        (Direction::ToController, SglKind::InCapsule { .. }) => return Some(Status::SGL_OFFSET_INVALID),
        _ => return Some(Status::SGL_TYPE_INVALID),
    };
    (len as usize > room).then_some(Status::SGL_LENGTH_INVALID)
}
