use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::process::{Process, free_port};
use crate::Result;

/// nginx as a plain reverse proxy: two workers, keep-alive on both legs, no access log.
pub struct Nginx {
    process: Process,
    addr: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// Starts one with two workers in front of `backend`.
    ///
    /// # Errors
    /// When nginx is not installed, or does not come up.
    pub fn start(backend: SocketAddr) -> Result<Self> {
        Self::with_workers(backend, 2)
    }

    /// Starts one with so many workers in front of `backend`.
    ///
    /// # Errors
    /// When nginx is not installed, or does not come up.
    pub fn with_workers(backend: SocketAddr, workers: usize) -> Result<Self> {
        let port = free_port()?;
        let folder = tempfile::tempdir()?;
        let home = folder.path().display();
        let config = format!(
            "daemon off;\nworker_processes {workers};\npid {home}/pid;\nerror_log {home}/error.log;\n\
             events {{ worker_connections 30000; }}\n\
             http {{\n\
             access_log off;\nkeepalive_requests 1000000000;\nkeepalive_timeout 1h;\n\
             client_body_temp_path {home}/body;\nproxy_temp_path {home}/proxy;\n\
             fastcgi_temp_path {home}/fastcgi;\nuwsgi_temp_path {home}/uwsgi;\nscgi_temp_path {home}/scgi;\n\
             map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}\n\
             upstream backend {{ server {backend}; keepalive 256; keepalive_requests 1000000000; }}\n\
             server {{\nlisten 127.0.0.1:{port} reuseport backlog=16384;\n\
             location / {{\nproxy_pass http://backend;\nproxy_http_version 1.1;\n\
             proxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection $connection_upgrade;\n\
             proxy_set_header Host $host;\nproxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
             proxy_buffering off;\nproxy_read_timeout 1h;\n}}\n}}\n}}\n"
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, config)?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&path).arg("-p").arg(folder.path());
        let process = Process::start(&mut command)
            .map_err(|error| format!("{error}; on Debian: apt-get install nginx"))?;
        let addr: SocketAddr = (Ipv4Addr::LOCALHOST, port).into();
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(addr).is_err() {
            if Instant::now() > deadline {
                let log = fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
                return Err(format!("nginx does not come up: {log}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self {
            process,
            addr,
            _folder: folder,
        })
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its master process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with the master only when that one is told; then it is waited for.
        let _ = Command::new("kill")
            .args(["-TERM", &self.process.pid().to_string()])
            .status();
        std::thread::sleep(Duration::from_millis(300));
    }
}
