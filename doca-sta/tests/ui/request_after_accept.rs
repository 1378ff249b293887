fn after(io: &doca_sta::Io, request: doca_sta::cm::Request) {
    let _ = io.accept(request, &[0; 32]);
    request.reject(&[]);
}

fn main() {}
