//! `meta.properties`: whose log directory this is. A Java properties file.
//!
//! ```text
//! #
//! node.id=1
//! directory.id=QRdfBvskTOmVywjU_zVdwA
//! version=1
//! cluster.id=Ps2waIfmSjOx6SKA5I5GAA
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use uuid::Uuid;

use crate::types::{BrokerId, base64_uuid, parse_base64_uuid};

use super::contents::DirContents;
use super::log_dir::{LogDir, LogDirError};

pub(super) const FILE: &str = "meta.properties";

/// The content of `meta.properties`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    pub cluster_id: String,
    pub node_id: BrokerId,
    /// `None`: written by a Kafka before directories had ids.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    pub(super) fn to_text(&self) -> String {
        let directory_id = self.directory_id.map(base64_uuid);
        let directory_id = directory_id.map_or(String::new(), |id| format!("directory.id={id}\n"));
        format!(
            "#\nnode.id={}\n{directory_id}version=1\ncluster.id={}\n",
            self.node_id, self.cluster_id
        )
    }

    /// What is wrong with it, if it cannot be read.
    pub(super) fn parse(text: &[u8]) -> Result<MetaProperties, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not text")?;
        let lines = text.lines().map(str::trim);
        let properties: BTreeMap<&str, &str> = lines
            .filter(|l| !l.starts_with(['#', '!']))
            .filter_map(|l| l.split_once(['=', ':']))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let get = |key| properties.get(key).copied();
        match get("version") {
            Some("1") => {}
            Some(_) => return Err("only version 1 is known"),
            None => return Err("it has no version"),
        }
        let node_id = get("node.id").ok_or("it has no node.id")?;
        let directory_id = match get("directory.id") {
            Some(id) => Some(parse_base64_uuid(id).ok_or("directory.id is not an id")?),
            None => None,
        };
        Ok(MetaProperties {
            cluster_id: get("cluster.id").ok_or("it has no cluster.id")?.to_owned(),
            node_id: BrokerId(node_id.parse().map_err(|_| "node.id is not a number")?),
            directory_id,
        })
    }
}

impl LogDir {
    /// `None`: not formatted yet.
    pub fn meta_properties(&self) -> Result<Option<MetaProperties>, LogDirError> {
        let path = self.core.path.join(FILE);
        let Some(content) = self.core.read_if_there(&path)? else {
            return Ok(None);
        };
        match MetaProperties::parse(&content) {
            Ok(meta) => {
                if let Some(id) = meta.directory_id {
                    let _ = self.id.set(id);
                }
                Ok(Some(meta))
            }
            Err(reason) => Err(LogDirError::Meta { path, reason }),
        }
    }

    /// Writes `meta.properties`.
    pub fn format(&self, meta: &MetaProperties) -> Result<(), LogDirError> {
        if self.write_meta(meta)? {
            self.is_fresh.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes `meta.properties` again, with the id that the directory had before.
    pub fn format_again(&self, meta: &MetaProperties) -> Result<(), LogDirError> {
        self.write_meta(meta).map(|_| ())
    }

    /// Whether it had no id.
    fn write_meta(&self, meta: &MetaProperties) -> Result<bool, LogDirError> {
        let path = self.core.path.join(FILE);
        self.core.replace(&path, meta.to_text().as_bytes())?;
        Ok(meta.directory_id.is_some_and(|id| self.id.set(id).is_ok()))
    }

    /// By which the cluster knows it; `None` before it was formatted or read.
    pub fn id(&self) -> Option<Uuid> {
        self.id.get().copied()
    }

    /// Whether it has had its id only since this start.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh.load(Ordering::Relaxed)
    }

    /// What it holds, by name.
    pub fn contents(&self) -> std::io::Result<DirContents> {
        DirContents::read(&*self.core.disk, &self.core.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_file_is_read_and_ours_too() {
        let kafka = "#\n#Sun Nov 29 18:07:41 UTC 2026\nnode.id=1\n\
                     directory.id=QRdfBvskTOmVywjU_zVdwA\nversion=1\n\
                     cluster.id=Ps2waIfmSjOx6SKA5I5GAA\n";
        let meta = MetaProperties::parse(kafka.as_bytes()).unwrap();
        assert_eq!(meta.node_id, BrokerId(1));
        assert_eq!(meta.cluster_id, "Ps2waIfmSjOx6SKA5I5GAA");
        assert_eq!(
            meta.directory_id.map(base64_uuid).as_deref(),
            Some("QRdfBvskTOmVywjU_zVdwA")
        );
        assert_eq!(MetaProperties::parse(meta.to_text().as_bytes()), Ok(meta));
    }

    #[test]
    fn damage_is_named() {
        let refused = |text: &str| MetaProperties::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refused("version=0\n"), "only version 1 is known");
        assert_eq!(
            refused("version=1\nnode.id=x\ncluster.id=c\n"),
            "node.id is not a number"
        );
        assert_eq!(refused("version=1\ncluster.id=c\n"), "it has no node.id");
    }
}
