//! Reads arguments as argparse4j does, which Kafka's newer tools use: options with `--` and `-`,
//! sub-commands, groups of which one is needed.
//!
//! ```text
//! prog [options] [sub-command [options]]       --name value   --name=value   -n value   -nvalue
//! ```
//!
//! 1. A long option may be shortened as long as one only is meant.
//! 2. Messages are argparse4j's; the usage above them is not broken into lines as it does it.

use std::collections::BTreeMap;

use super::exit::Exit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Nothing follows.
    Flag,
    One,
    /// One or more words, up to the next option.
    Many,
}

#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// The long name first.
    pub names: &'static [&'static str],
    pub metavar: &'static str,
    pub take: Take,
    pub is_required: bool,
    pub choices: &'static [&'static str],
    pub help: &'static str,
}

pub const fn option(
    names: &'static [&'static str],
    metavar: &'static str,
    help: &'static str,
) -> Argument {
    Argument {
        names,
        metavar,
        take: Take::One,
        is_required: false,
        choices: &[],
        help,
    }
}

pub const fn switch(names: &'static [&'static str], help: &'static str) -> Argument {
    let mut argument = option(names, "", help);
    argument.take = Take::Flag;
    argument
}

impl Argument {
    pub const fn required(mut self) -> Argument {
        self.is_required = true;
        self
    }

    pub const fn many(mut self) -> Argument {
        self.take = Take::Many;
        self
    }

    pub const fn one_of(mut self, choices: &'static [&'static str]) -> Argument {
        self.choices = choices;
        self
    }

    fn display(&self) -> String {
        self.names.join("/")
    }
}

/// A program or a sub-command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub name: &'static str,
    pub help: &'static str,
    pub arguments: &'static [Argument],
    /// Long names of which at most one may be given, and whether one has to be.
    pub exclusive: &'static [(&'static [&'static str], bool)],
    pub commands: &'static [Command],
}

/// What was given.
#[derive(Debug, Default)]
pub struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
    pub command: Option<&'static str>,
}

impl Given {
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub fn one(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        let values = self.values.get(name);
        values.into_iter().flatten().map(String::as_str).collect()
    }
}

pub enum Parsed {
    Given(Given),
    /// `--help` of the program or a sub-command.
    Help(String),
    /// The command line is wrong: the usage, and what is wrong.
    Wrong {
        usage: String,
        message: String,
    },
}

impl Command {
    /// Reads the words after the program's name.
    pub fn parse(&self, words: &[String]) -> Parsed {
        let mut given = Given::default();
        let mut path = vec![*self];
        match read(words, &mut given, &mut path) {
            Ok(()) => Parsed::Given(given),
            Err(Stop::Help) => Parsed::Help(help(&path)),
            Err(Stop::Wrong(message)) => {
                let usage = usage(&path);
                let name = self.name;
                let message = format!("{name}: error: {message}");
                Parsed::Wrong { usage, message }
            }
        }
    }

    /// As [`Command::parse`]; help and mistakes end the command with 0 and 1.
    pub fn parse_or_exit(&self, words: &[String]) -> Result<Given, Exit> {
        match self.parse(words) {
            Parsed::Given(given) => Ok(given),
            Parsed::Help(text) => Err(Exit {
                code: 0,
                out: text,
                err: String::new(),
            }),
            Parsed::Wrong { usage, message } => Err(Exit::error(format!("{usage}{message}"))),
        }
    }
}

enum Stop {
    Help,
    Wrong(String),
}

fn read(words: &[String], given: &mut Given, path: &mut Vec<Command>) -> Result<(), Stop> {
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let command = path[path.len() - 1];
        if !(word.starts_with('-') && word.len() > 1) {
            if command.commands.is_empty() {
                return Err(Stop::Wrong(format!("unrecognized arguments: '{word}'")));
            }
            enter(word, given, path)?;
            continue;
        }
        if word == "-h" || word == "--help" {
            return Err(Stop::Help);
        }
        let (argument, inline) = find(word, path)?;
        let name = argument.names[0];
        check_exclusive(argument, given, path)?;
        let values = given.values.entry(name).or_default();
        match (argument.take, inline) {
            (Take::Flag, _) => {}
            (_, Some(value)) => values.push(value),
            (Take::One, None) => match rest.next_if(|next| !is_option(next)) {
                Some(value) => values.push(value.clone()),
                None => {
                    let display = argument.display();
                    let text = format!("argument {display}: expected one argument");
                    return Err(Stop::Wrong(text));
                }
            },
            (Take::Many, None) => {
                while let Some(value) = rest.next_if(|next| !is_option(next)) {
                    values.push(value.clone());
                }
            }
        }
        if let Some(value) = values.last()
            && !argument.choices.is_empty()
            && !argument.choices.contains(&value.as_str())
        {
            let text = format!(
                "argument {}: invalid choice: '{value}' (choose from {{{}}})",
                argument.display(),
                argument.choices.join(",")
            );
            return Err(Stop::Wrong(text));
        }
    }
    finish(given, path)
}

/// A number below zero is a value.
fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1 && word.parse::<f64>().is_err()
}

fn enter(word: &str, given: &mut Given, path: &mut Vec<Command>) -> Result<(), Stop> {
    let command = path[path.len() - 1];
    let Some(found) = command.commands.iter().find(|c| c.name == word) else {
        let names: Vec<String> = command
            .commands
            .iter()
            .map(|c| format!("'{}'", c.name))
            .collect();
        let text = format!(
            "invalid choice: '{word}' (choose from {})",
            names.join(", ")
        );
        return Err(Stop::Wrong(text));
    };
    check_required(given, &command)?;
    given.command = Some(found.name);
    path.push(*found);
    Ok(())
}

fn find(word: &str, path: &[Command]) -> Result<(Argument, Option<String>), Stop> {
    let unknown = || Stop::Wrong(format!("unrecognized arguments: '{word}'"));
    let known = || path[path.len() - 1].arguments.iter();
    let (name, inline) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    if let Some(found) = known().find(|a| a.names.contains(&name)) {
        return Ok((*found, inline));
    }
    if name.starts_with("--") {
        let mut matches = known().filter(|a| a.names.iter().any(|n| n.starts_with(name)));
        return match (matches.next(), matches.next()) {
            (Some(found), None) => Ok((*found, inline)),
            (Some(first), Some(second)) => Err(Stop::Wrong(format!(
                "ambiguous option: {name} could match {}, {}",
                first.names[0], second.names[0]
            ))),
            _ => Err(unknown()),
        };
    }
    // `-b127.0.0.1:9092`
    let short = word.char_indices().nth(2).map(|(at, _)| word.split_at(at));
    let found = short.and_then(|(name, value)| {
        let found = known().find(|a| a.names.contains(&name))?;
        Some((*found, Some(value.to_owned())))
    });
    found.ok_or_else(unknown)
}

fn check_exclusive(argument: Argument, given: &Given, path: &[Command]) -> Result<(), Stop> {
    let groups = path.iter().flat_map(|command| command.exclusive);
    for (group, _) in groups.filter(|(group, _)| group.contains(&argument.names[0])) {
        let other = group
            .iter()
            .find(|name| **name != argument.names[0] && given.has(name));
        if let Some(other) = other {
            let text = format!(
                "argument {}: not allowed with argument {}",
                argument.display(),
                display_of(other, path)
            );
            return Err(Stop::Wrong(text));
        }
    }
    Ok(())
}

fn display_of(name: &str, path: &[Command]) -> String {
    let mut known = path.iter().flat_map(|command| command.arguments);
    let found = known.find(|argument| argument.names[0] == name);
    found.map_or_else(|| name.to_owned(), Argument::display)
}

fn check_required(given: &Given, command: &Command) -> Result<(), Stop> {
    for argument in command.arguments.iter().filter(|a| a.is_required) {
        if !given.has(argument.names[0]) {
            let text = format!("argument {} is required", argument.display());
            return Err(Stop::Wrong(text));
        }
    }
    for (group, is_required) in command.exclusive {
        if *is_required && !group.iter().any(|name| given.has(name)) {
            let path = [*command];
            let names: Vec<String> = group.iter().map(|name| display_of(name, &path)).collect();
            let text = format!("one of the arguments {} is required", names.join(" "));
            return Err(Stop::Wrong(text));
        }
    }
    Ok(())
}

fn finish(given: &Given, path: &[Command]) -> Result<(), Stop> {
    let last = path[path.len() - 1];
    if !last.commands.is_empty() {
        return Err(Stop::Wrong("too few arguments".to_owned()));
    }
    check_required(given, &last)
}

fn usage(path: &[Command]) -> String {
    let names: Vec<&str> = path.iter().map(|command| command.name).collect();
    let last = path[path.len() - 1];
    let mut parts = vec!["[-h]".to_owned()];
    for argument in last.arguments {
        let value = match argument.take {
            Take::Flag => String::new(),
            Take::One => format!(" {}", argument.metavar),
            Take::Many => format!(" {0} [{0} ...]", argument.metavar),
        };
        let part = format!("{}{value}", argument.names[0]);
        parts.push(match argument.is_required {
            true => part,
            false => format!("[{part}]"),
        });
    }
    if !last.commands.is_empty() {
        let names: Vec<&str> = last.commands.iter().map(|command| command.name).collect();
        parts.push(format!("{{{}}} ...", names.join(",")));
    }
    format!("usage: {} {}\n", names.join(" "), parts.join(" "))
}

fn help(path: &[Command]) -> String {
    let last = path[path.len() - 1];
    let mut text = format!("{}\n{}\n", usage(path), last.help);
    if !last.commands.is_empty() {
        text += "\npositional arguments:\n";
        for command in last.commands {
            text += &format!("  {:22} {}\n", command.name, command.help);
        }
    }
    text += "\noptional arguments:\n";
    text += &format!(
        "  {:22} {}\n",
        "-h, --help", "show this help message and exit"
    );
    for argument in last.arguments {
        let value = match argument.take {
            Take::Flag => String::new(),
            _ => format!(" {}", argument.metavar),
        };
        let names: Vec<String> = argument
            .names
            .iter()
            .map(|n| format!("{n}{value}"))
            .collect();
        text += &format!("  {:22} {}\n", names.join(", "), argument.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Command = Command {
        name: "tool",
        help: "",
        arguments: &[option(&["--bootstrap-server", "-b"], "B", "").required()],
        exclusive: &[],
        commands: &[Command {
            name: "go",
            help: "",
            arguments: &[
                option(&["--id", "-i"], "ID", ""),
                switch(&["--dry-run"], ""),
                option(&["--left"], "L", ""),
                option(&["--right"], "R", "").many(),
            ],
            exclusive: &[(&["--left", "--right"], true)],
            commands: &[],
        }],
    };

    fn parse(line: &str) -> Result<Given, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match TOOL.parse(&words) {
            Parsed::Given(given) => Ok(given),
            Parsed::Help(_) => Err("help".to_owned()),
            Parsed::Wrong { message, .. } => Err(message),
        }
    }

    #[test]
    fn options_of_program_and_command() {
        let given = parse("-b x go --id=7 --dry --right a b").unwrap();
        assert_eq!(given.command, Some("go"));
        assert_eq!(
            (given.one("--bootstrap-server"), given.one("--id")),
            (Some("x"), Some("7"))
        );
        assert!(given.has("--dry-run"));
        assert_eq!(given.all("--right"), ["a", "b"]);
        assert_eq!(
            parse("-bx go -i -1 --left l").unwrap().one("--id"),
            Some("-1")
        );
    }

    #[test]
    fn messages_of_argparse4j() {
        let error = |line| parse(line).unwrap_err();
        assert_eq!(error("-b x"), "tool: error: too few arguments");
        assert_eq!(error(""), "tool: error: too few arguments");
        let text = "tool: error: argument --bootstrap-server/-b is required";
        assert_eq!(error("go --left l"), text);
        let text = "tool: error: invalid choice: 'run' (choose from 'go')";
        assert_eq!(error("-b x run"), text);
        let text = "tool: error: one of the arguments --left --right is required";
        assert_eq!(error("-b x go"), text);
        let text = "tool: error: argument --right: not allowed with argument --left";
        assert_eq!(error("-b x go --left l --right r"), text);
        let text = "tool: error: argument --id/-i: expected one argument";
        assert_eq!(error("-b x go --id"), text);
        let text = "tool: error: unrecognized arguments: '--foo'";
        assert_eq!(error("-b x go --foo"), text);
        assert_eq!(error("go --help"), text_of_required());
    }

    fn text_of_required() -> &'static str {
        "tool: error: argument --bootstrap-server/-b is required"
    }
}
