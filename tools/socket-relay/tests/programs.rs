//! Programs that know nothing of DOCA, through the relay: what they say is what they say on the direct connection.
//!
//! What the machine lacks is installed with apt-get where that is allowed; a test that cannot have its programs says so
//! in capitals and ends.

mod support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use support::pair::{Place, Process, connect, eventually};

/// Finds programs, or installs the packages that have them.
fn provide(programs: &[&str], packages: &[&str]) -> Option<Vec<PathBuf>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let find = || programs.iter().map(|name| find(name)).collect::<Option<Vec<_>>>();
    find().or_else(|| {
        let apt = |args: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(["-o", "DPkg::Lock::Timeout=300", "--quiet"]).args(args);
            command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let root = nix::unistd::geteuid().is_root();
        let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
        let found = if root && apt(&["update"]) && apt(&install) { find() } else { None };
        if found.is_none() {
            eprintln!(
                "\n*** NOT TESTED: {} is missing and cannot be installed here; apt-get install {} ***\n",
                programs.join(", "),
                packages.join(" ")
            );
        }
        found
    })
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Debian keeps PostgreSQL's server programs by release.
    for release in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        dirs.insert(0, release.path().join("bin"));
    }
    dirs.into_iter().map(|dir| dir.join(name)).find(|path| path.exists())
}

/// Runs to the end; what it said.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

#[test]
fn redis_with_two_hundred_clients_that_pipeline() {
    let packages = ["redis-server", "redis-tools"];
    let Some(programs) = provide(&["redis-server", "redis-cli", "redis-benchmark"], &packages) else {
        return;
    };
    let [server, cli, benchmark] = &programs[..] else { return };
    let place = Place::new();
    let mut command = Command::new(server);
    command
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(place.server_path());
    let _redis = Process::start(command.arg("--dir").arg(place.dir.path()), &place.path("redis.log"));
    drop(connect(&place.server_path()));
    let _relays = place.pair();
    drop(place.client());
    let ask = |socket: &Path, args: &[&str]| run(Command::new(cli).arg("-s").arg(socket).args(args));
    // Long values, and commands that see each other's effects.
    let long = "x".repeat(300_000);
    let script = format!(
        "SET long {long}\nAPPEND long end\nSTRLEN long\nGET long\nLPUSH l 1 2 3\nLRANGE l 0 -1\nNONSENSE\n"
    );
    let mut said = Vec::new();
    for socket in [place.server_path(), place.client_path()] {
        ask(&place.server_path(), &["FLUSHALL"]);
        let file = place.path("script");
        fs::write(&file, &script).unwrap();
        let input = fs::File::open(&file).unwrap();
        said.push(run(Command::new(cli).arg("-s").arg(&socket).stdin(input)));
    }
    assert!(said[0] == said[1] && said[0].contains("300003"));
    let load = ["-c", "200", "-n", "40000", "-P", "16", "-q"];
    run(Command::new(benchmark).arg("-s").arg(place.client_path()).args(load).args(["INCR", "total"]));
    assert_eq!(ask(&place.server_path(), &["GET", "total"]).trim(), "40000");
    let kinds = ["-t", "set,get,lpush,lrange_100,mset", "-d", "1000"];
    let said = run(Command::new(benchmark).arg("-s").arg(place.client_path()).args(load).args(kinds));
    assert_eq!(said.matches("requests per second").count(), 6, "{said}");
    let metrics = place.ask(&place.client_path(), "metrics");
    assert!(metrics["peak"].as_u64().unwrap() >= 200, "{metrics}");
}

/// Serves a directory over HTTP on a unix socket, with uploads.
const HTTP: &str = r#"
import http.server, socketserver, sys, os
os.chdir(sys.argv[2])
class Handler(http.server.SimpleHTTPRequestHandler):
    def address_string(self): return "unix"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128
Server(sys.argv[1], Handler).serve_forever()
"#;

#[test]
fn an_http_server_and_curl() {
    let Some(programs) = provide(&["python3", "curl"], &["python3", "curl"]) else { return };
    let [python, curl] = &programs[..] else { return };
    let place = Place::new();
    let files = place.path("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("large"), support::pair::pattern(1, 5_000_000)).unwrap();
    let mut command = Command::new(python);
    command.args(["-c", HTTP]).arg(place.server_path()).arg(&files);
    let _server = Process::start(&mut command, &place.path("http.log"));
    drop(connect(&place.server_path()));
    let _relays = place.pair();
    drop(place.client());
    let get = |socket: &Path, args: &[&str], out: &str| {
        let mut command = Command::new(curl);
        command.args(["--silent", "--show-error", "--max-time", "60", "--unix-socket"]).arg(socket);
        run(command.args(args).arg("-o").arg(place.path(out)));
        fs::read(place.path(out)).unwrap()
    };
    let upload = format!("@{}", files.join("large").display());
    for args in [
        vec!["http://localhost/large"],
        vec!["http://localhost/"],
        vec!["http://localhost/no-such-file"],
        vec!["--data-binary", &upload, "http://localhost/reverse"],
    ] {
        let direct = get(&place.server_path(), &args, "direct");
        assert!(!direct.is_empty() && direct == get(&place.client_path(), &args, "relayed"), "{args:?}");
    }
    let (get, socket) = (&get, &place.client_path());
    std::thread::scope(|scope| {
        for client in 0..20 {
            scope.spawn(move || {
                let got = get(socket, &["http://localhost/large"], &format!("parallel{client}"));
                assert_eq!(got.len(), 5_000_000);
            });
        }
    });
}

#[test]
fn postgresql_and_pgbench() {
    let programs = ["initdb", "postgres", "pgbench", "psql"];
    let Some(programs) = provide(&programs, &["postgresql", "postgresql-contrib"]) else { return };
    let [initdb, postgres, pgbench, psql] = &programs[..] else { return };
    let place = Place::new();
    let [data, far, near] = ["data", "far", "near"].map(|name| place.path(name));
    for dir in [&far, &near] {
        fs::create_dir(dir).unwrap();
    }
    // The server refuses to be root.
    let user = nix::unistd::User::from_name(if nix::unistd::geteuid().is_root() { "nobody" } else { "" });
    let user = user.ok().flatten();
    let as_user = |program: &Path| {
        let mut command = Command::new(program);
        if let Some(user) = &user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command.current_dir("/").env("LC_ALL", "C");
        command
    };
    if let Some(user) = &user {
        fs::create_dir(&data).unwrap();
        for dir in [place.dir.path(), &data, &far] {
            nix::unistd::chown(dir, Some(user.uid), Some(user.gid)).unwrap();
        }
    }
    run(as_user(initdb).args(["-A", "trust", "-U", "bench", "--no-sync", "-D"]).arg(&data));
    let mut command = as_user(postgres);
    command.arg("-D").arg(&data).arg("-k").arg(&far).args(["-c", "listen_addresses=", "-c", "fsync=off"]);
    let _server = Process::start(&mut command, &place.path("postgres.log"));
    let socket = ".s.PGSQL.5432";
    drop(connect(&far.join(socket)));
    let off = ["--probe-app", "off", "-s"];
    let _dpu = Process::start(place.dpu_command().args(off).arg(far.join(socket)), &place.path("dpu.log"));
    let _host =
        Process::start(place.host_command().args(off).arg(near.join(socket)), &place.path("host.log"));
    drop(connect(&near.join(socket)));
    let with = |program: &Path, dir: &Path, args: &[&str]| {
        run(Command::new(program).arg("-h").arg(dir).args(["-U", "bench"]).args(args))
    };
    // It may still be starting.
    eventually("PostgreSQL answers", || {
        let mut ask = Command::new(psql);
        ask.arg("-h").arg(&far).args(["-U", "bench", "-c", "select 1", "postgres"]);
        ask.output().is_ok_and(|output| output.status.success()).then_some(())
    });
    with(pgbench, &near, &["-i", "-s", "1", "-q", "postgres"]);
    let said = with(pgbench, &near, &["-c", "20", "-j", "2", "-t", "50", "postgres"]);
    assert!(said.contains("1000/1000"), "{said}");
    let query = "select (select sum(abalance) from pgbench_accounts) - (select sum(delta) from pgbench_history), \
                 (select count(*) from pgbench_history)";
    let ask = |dir: &Path, query: &str| with(psql, dir, &["-A", "-t", "-c", query, "postgres"]);
    assert_eq!(ask(&near, query).trim(), "0|1000");
    // A large answer, the same both ways.
    let all = "select * from pgbench_accounts order by aid";
    assert!(ask(&near, all) == ask(&far, all));
}
