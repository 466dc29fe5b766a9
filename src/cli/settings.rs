//! The configuration of a command's client: `--bootstrap-server`, a properties file and
//! `--command-property` (also under their older names), read as Kafka's clients read them.
//!
//! 1. What has an effect here is read, what makes no difference to a command is passed over
//!    ([`super::passed_over`]), what would be unsafe to pass over (TLS, SASL) is refused, and of
//!    everything else it is said that it has no effect.
//! 2. A later source wins: file, then properties on the command line, then `--bootstrap-server`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;

use crate::config::parse_properties;
use crate::host::read_given;
use crate::peer::{Address, AddressError, Client, ClientConfig, parse_bootstrap};

use super::admin::Admin;
use super::exit::Exit;
use super::passed_over::{ClientKind, is_passed_over};
use super::unreachable;

/// Names to values, as in a properties file.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    values: BTreeMap<String, String>,
    /// The names that somebody has asked for.
    read: RefCell<BTreeSet<String>>,
}

impl Settings {
    /// The content of a properties file.
    pub fn read_file(path: &str) -> Result<Settings, Exit> {
        let mut settings = Settings::default();
        settings.add_file(path)?;
        Ok(settings)
    }

    pub fn add_file(&mut self, path: &str) -> Result<(), Exit> {
        let missing = |_| {
            let text = format!("{path} (No such file or directory)");
            Exit::uncaught("java.io.FileNotFoundException", &text)
        };
        let bytes = read_given(Path::new(path)).map_err(missing)?;
        let text = String::from_utf8_lossy(&bytes);
        let read = parse_properties(path, &text).map_err(|error| Exit::error(error.to_string()))?;
        for property in read {
            self.set(&property.name, &property.value);
        }
        Ok(())
    }

    pub fn into_pairs(self) -> impl Iterator<Item = (String, String)> {
        self.values.into_iter()
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?;
        self.read.borrow_mut().insert(name.to_owned());
        Some(value)
    }

    /// A value, without making use of it.
    pub fn peek(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The names that nobody has asked for, and that may have been meant to do something.
    fn without_effect(&self, kind: ClientKind) -> Vec<&str> {
        let read = self.read.borrow();
        let names = self.values.keys().map(String::as_str);
        names
            .filter(|name| !read.contains(*name) && !is_passed_over(kind, name))
            .collect()
    }

    /// A number, or what is used when there is none.
    pub fn number<N: std::str::FromStr>(&self, name: &str, default: N) -> Result<N, Exit> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        value.trim().parse().map_err(|_| {
            let text = format!(
                "Invalid value {value} for configuration {name}: Not a number of type {}",
                if std::mem::size_of::<N>() == 4 {
                    "INT"
                } else {
                    "LONG"
                }
            );
            Exit::uncaught(CONFIG_EXCEPTION, &text)
        })
    }

    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name)
            .map_or(default, |v| v.trim().eq_ignore_ascii_case("true"))
    }

    fn duration(&self, name: &str, default: Duration) -> Result<Duration, Exit> {
        let millis = self.number(name, default.as_millis() as u64)?;
        Ok(Duration::from_millis(millis))
    }

    /// The admin client of a command. A bad address list is refused as Kafka's client refuses it.
    pub fn admin(&self) -> Result<Admin, Exit> {
        Ok(Admin::new(self.client(ClientKind::Admin, "adminclient-1")?))
    }

    /// The client that these settings describe. Everything else that the command reads of them is
    /// read before.
    pub fn client(&self, kind: ClientKind, client_id: &str) -> Result<Client, Exit> {
        self.refuse_security()?;
        let failure = kind.failure();
        let bootstrap = self.get("bootstrap.servers").unwrap_or_default();
        let bootstrap = parse_bootstrap(bootstrap)
            .and_then(resolvable)
            .map_err(|error| {
                Exit::error(format!(
                    "{failure}\norg.apache.kafka.common.KafkaException: {failure}\n\
                 Caused by: {CONFIG_EXCEPTION}: {error}"
                ))
            })?;
        let client_id = self.get("client.id").unwrap_or(client_id);
        let mut config = ClientConfig::new(bootstrap, client_id);
        let request = "request.timeout.ms";
        config.request_timeout = self.duration(request, config.request_timeout)?;
        config.api_timeout = self.duration("default.api.timeout.ms", config.api_timeout)?;
        if kind == ClientKind::Producer {
            // A producer has another name for it.
            config.api_timeout = self.duration("max.block.ms", config.api_timeout)?;
        }
        let dial = "socket.connection.setup.timeout.ms";
        config.dial_timeout = self.duration(dial, config.dial_timeout)?;
        config.backoff.first = self.duration("retry.backoff.ms", config.backoff.first)?;
        config.backoff.max = self.duration("retry.backoff.max.ms", config.backoff.max)?;
        config.on_unreachable = Some(match kind {
            ClientKind::Admin => unreachable::of_admin,
            ClientKind::Consumer => unreachable::of_consumer,
            ClientKind::Producer => unreachable::of_producer,
        });
        for name in self.without_effect(kind) {
            eprintln!("klamm: {name} has no effect here");
        }
        Ok(Client::new(config))
    }

    fn refuse_security(&self) -> Result<(), Exit> {
        let protocol = self.get("security.protocol").unwrap_or("PLAINTEXT").trim();
        if protocol.eq_ignore_ascii_case("PLAINTEXT") || protocol.is_empty() {
            return Ok(());
        }
        let known = ["SSL", "SASL_PLAINTEXT", "SASL_SSL"];
        let upper = protocol.to_ascii_uppercase();
        Err(match known.contains(&upper.as_str()) {
            true => Exit::error(format!(
                "klamm: security.protocol={protocol} is not supported yet: these commands connect \
                 in plain text only"
            )),
            false => Exit::uncaught(
                CONFIG_EXCEPTION,
                &format!(
                    "Invalid value {protocol} for configuration security.protocol: (case \
                     insensitive) String must be one of: PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL"
                ),
            ),
        })
    }
}

/// Fails unless one of the names is known: Kafka's clients do not wait for that.
fn resolvable(addresses: Vec<Address>) -> Result<Vec<Address>, AddressError> {
    let is_known = |address: &Address| {
        let found = (address.target(), address.port).to_socket_addrs();
        found.is_ok_and(|mut found| found.next().is_some())
    };
    match addresses.iter().any(is_known) {
        true => Ok(addresses),
        false => Err(AddressError::Empty),
    }
}

/// A value that Kafka's client refuses.
pub fn config_error(text: &str) -> Exit {
    Exit::error(format!("{CONFIG_EXCEPTION}: {text}"))
}

const CONFIG_EXCEPTION: &str = "org.apache.kafka.common.config.ConfigException";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reads_is_named() {
        let mut settings = Settings::default();
        for name in [
            "acks",
            "enable.idempotense",
            "interceptor.classes",
            "group.protocol",
            "ssl.truststore.location",
            "metadata.max.age.ms",
        ] {
            settings.set(name, "x");
        }
        settings.get("acks");
        let unread = |kind| settings.without_effect(kind);
        assert_eq!(
            unread(ClientKind::Producer),
            ["enable.idempotense", "interceptor.classes"]
        );
        // A file may serve several tools.
        assert_eq!(unread(ClientKind::Admin), ["enable.idempotense"]);
        assert_eq!(
            unread(ClientKind::Consumer),
            [
                "enable.idempotense",
                "group.protocol",
                "interceptor.classes"
            ]
        );
    }
}
