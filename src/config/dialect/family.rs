//! What one family of images does in its own way.

/// The families whose variables are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Apache,
    CpKafka,
    CpServer,
    ConfluentLocal,
    Bitnami,
    Wurstmeister,
    Spotify,
    FastDataDev,
    Debezium,
}

/// Whether a mounted properties file goes below the environment or takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileWins {
    BelowEnvironment,
    OverEverything,
}

/// What a variable of the family's own means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// A configuration of this name.
    Property(&'static str),
    /// Something that [`super::complete`] makes listeners of.
    Host,
    Port,
}

#[derive(Debug)]
pub struct Family {
    pub dialect: Dialect,
    /// As an image is called.
    pub name: &'static str,
    /// What `--dialect` takes.
    pub word: &'static str,
    /// A variable's prefix, and what is written in its place.
    pub prefixes: &'static [(&'static str, &'static str)],
    /// Whether `___` is a dash and `__` an underscore.
    pub escapes: bool,
    /// Prefixed names that are no configuration, beside those of every family.
    pub left_out: &'static [&'static str],
    /// Names without the prefix.
    pub own: &'static [(&'static str, Own)],
    /// Names whose value may lie in the file that NAME_FILE names.
    pub files: &'static [&'static str],
    pub cluster_id: &'static [&'static str],
    pub cluster_id_default: Option<&'static str>,
    /// Below the environment, name by name.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Only when the environment says nothing at all.
    pub defaults_alone: &'static [(&'static str, &'static str)],
    /// `$HOST` and `$ID` stand for the host's name and the node's id.
    pub log_dirs: &'static str,
    pub listeners: &'static str,
    pub advertised: Option<&'static str>,
    /// Where a mounted file is looked for.
    pub mounted_file: Option<&'static str>,
    pub file_wins: FileWins,
}

impl Family {
    pub fn own(&self, variable: &str) -> Option<Own> {
        let found = self.own.iter().find(|(name, _)| *name == variable);
        found.map(|(_, own)| *own)
    }
}
