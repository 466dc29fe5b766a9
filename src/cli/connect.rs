//! How the tools that read their arguments with [`super::argparse`] reach a cluster.

use super::admin::Admin;
use super::argparse::{Argument, Given, option};
use super::exit::Exit;
use super::settings::Settings;

pub const SERVER: Argument = option(
    &["--bootstrap-server"],
    "BOOTSTRAP_SERVER",
    "Brokers, HOST1:PORT1,HOST2:PORT2.",
);
pub const CONTROLLER: Argument = option(
    &["--bootstrap-controller"],
    "BOOTSTRAP_CONTROLLER",
    "Controllers, HOST1:PORT1.",
);
pub const CONFIG: Argument = option(
    &["--command-config"],
    "COMMAND_CONFIG",
    "Properties of the admin client.",
);

/// The admin client for `--bootstrap-server` or `--bootstrap-controller`.
pub fn admin(given: &Given) -> Result<Admin, Exit> {
    let mut settings = Settings::default();
    for name in ["--config", "--command-config"] {
        if let Some(file) = given.one(name) {
            settings.add_file(file)?;
        }
    }
    let servers = given
        .one("--bootstrap-server")
        .or(given.one("--bootstrap-controller"));
    settings.set("bootstrap.servers", servers.unwrap_or_default());
    let mut admin = settings.admin()?;
    admin.is_controller = given.has("--bootstrap-controller");
    Ok(admin)
}

/// Columns as wide as their widest cell, each followed by `gap`.
pub fn table(header: &[&str], rows: &[Vec<String>], gap: &str) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let lines = std::iter::once(&header).chain(rows).map(|row| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}{gap}"));
        cells.collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}
