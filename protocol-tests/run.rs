//! Runs a case against a broker: one version after the other, each with topics of its own.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use klamm::types::base64_uuid;
use klamm::wire::{self, Value};

use crate::batch;
use crate::broker::Broker;
use crate::case::{Action, Case, Request, Step};
use crate::connection::{Connection, Received, api_key};
use crate::placeholders::{Placeholders, T0_BEFORE_MS};
use crate::recording::{Answer, Recording};
use crate::request;
use crate::sweep;
use crate::variables::Variables;

/// How long a change may take to show: the leaders of a new topic, or what `until` waits for.
const CHANGE_LIMIT: Duration = Duration::from_secs(15);
/// A connection that a broker would close is closed well before this.
const SILENCE: Duration = Duration::from_millis(500);

pub fn case(broker: &Broker, case: &Case) -> Result<Recording, String> {
    let mut recording = Recording::default();
    for version in case.runs() {
        let mut run = Run::new(broker, case, version);
        for step in case.steps.iter().filter(|step| step.is_for(version)) {
            let answer = run.step(step).map_err(|e| {
                let version = version.map_or(String::new(), |v| format!(" v{v}"));
                format!("line {}{version}: {e}", step.line)
            })?;
            if let Some(answer) = answer {
                recording.add(&step.label, version, answer);
            }
        }
    }
    // A step that only some versions take comes where the case has it.
    let place = |label: &str| case.steps.iter().position(|step| step.label == label);
    recording.steps.sort_by_key(|(label, _)| place(label));
    Ok(recording)
}

/// What `conform` says of the frames of the sweeps of a case, without a broker.
pub fn conform_sweeps(case: &Case) -> Result<Recording, String> {
    let broker = Broker::absent();
    let mut recording = Recording::default();
    for version in case.runs() {
        let mut run = Run::new(&broker, case, version);
        for step in case.steps.iter().filter(|step| step.is_for(version)) {
            match &step.action {
                Action::Topic(name, _) => {
                    run.variables.set(name, run.unique(name));
                    run.variables
                        .set(format!("{name}.id"), "AAAAAAAAAAAAAAAAAAAAEQ");
                }
                Action::Name(name) => run.variables.set(name, run.unique(name)),
                Action::Sweep(kind, request) => {
                    let frame = run.encode(request, 1)?;
                    let conforms = |frame: &[u8]| {
                        let passes = wire::conform(&Bytes::copy_from_slice(frame)).is_ok();
                        if passes { "answered" } else { "closed" }.to_owned()
                    };
                    let answer = sweep::outcomes(kind, &frame, &request.except, conforms)?;
                    recording.add(&step.label, version, answer);
                }
                _ => {}
            }
        }
    }
    Ok(recording)
}

/// The good requests of a case, as frames. Its topics have names but are not made.
pub fn frames(broker: &Broker, case: &Case) -> Vec<Bytes> {
    let mut frames = Vec::new();
    for version in case.runs() {
        let mut run = Run::new(broker, case, version);
        for step in case.steps.iter().filter(|step| step.is_for(version)) {
            match &step.action {
                Action::Name(name) => run.variables.set(name, run.unique(name)),
                Action::Topic(name, _) => {
                    run.variables.set(name, run.unique(name));
                    let id = format!("{name}.id");
                    run.variables.set(id, "AAAAAAAAAAAAAAAAAAAAEQ");
                }
                Action::Let(name, _) => run.variables.set(name, "7"),
                // What needs an answer's value in a place where 7 does not fit is left out.
                Action::Request(request) | Action::Send(request) => {
                    frames.extend(run.encode(request, 1));
                }
                _ => {}
            }
        }
    }
    frames
}

struct Open {
    connection: Connection,
    /// What was sent and not yet answered: key, version, correlation id, and how to show it.
    pending: VecDeque<(i16, i16, i32, Request)>,
}

pub struct Run<'a> {
    pub broker: &'a Broker,
    case: &'a Case,
    version: Option<i16>,
    variables: Variables,
    placeholders: Placeholders<'a>,
    connections: BTreeMap<String, Open>,
    last: Value,
}

impl<'a> Run<'a> {
    fn new(broker: &'a Broker, case: &'a Case, version: Option<i16>) -> Self {
        let mut variables = Variables::default();
        variables.set("t0", (broker.now_ms - T0_BEFORE_MS).to_string());
        variables.set("now", broker.now_ms.to_string());
        variables.set("cluster_id", broker.cluster_id.clone());
        Run {
            broker,
            case,
            version,
            variables,
            placeholders: Placeholders::new(broker),
            connections: BTreeMap::new(),
            last: Value::Null,
        }
    }

    fn step(&mut self, step: &Step) -> Result<Option<Answer>, String> {
        match &step.action {
            Action::Name(name) => {
                self.variables.set(name, self.unique(name));
                Ok(None)
            }
            Action::Topic(name, options) => self.make_topic(name, options).map(|()| None),
            Action::Let(name, path) => self.bind(name, path).map(|()| None),
            Action::Request(request) => self.request(request),
            Action::Send(request) => self.send(request).map(|()| None),
            Action::SendOnly(request) => {
                let frame = self.encode(request, -1)?;
                self.open(&request.connection).connection.send_frame(&frame);
                Ok(None)
            }
            Action::Receive(connection, hidden) => {
                let mut answer = self.receive(connection)?;
                answer.retain(|(path, _)| !hidden.iter().any(|name| path.ends_with(name)));
                Ok(Some(answer))
            }
            Action::HalfClose(connection) => {
                self.open(connection).connection.close_write();
                Ok(None)
            }
            Action::Raw(connection, text) => {
                let bytes = self.bytes(text)?;
                self.open(connection).connection.send_raw(&bytes);
                self.receive(connection).map(Some)
            }
            Action::Waits(connection, text) => {
                let bytes = self.bytes(text)?;
                let connection = &mut self.open(connection).connection;
                connection.answer_limit(SILENCE);
                connection.send_raw(&bytes);
                Ok(Some(outcome(&connection.receive())))
            }
            Action::Frame(connection, text, own) => {
                let frame = self.bytes(text)?;
                self.send_frame(connection, &frame, *own)?;
                self.receive(connection).map(Some)
            }
            Action::Sweep(kind, request) => {
                let frame = self.encode(request, 1)?;
                sweep::run(self.broker, kind, &frame, &request.except).map(Some)
            }
        }
    }

    /// A topic name that no other run, case or version has, as long for each version.
    fn unique(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix())
    }

    /// What the names of this run of the case begin with.
    fn prefix(&self) -> String {
        let case = self.case.name.replace('/', "-");
        let version = self.version.unwrap_or(0);
        format!("{}-{case}-v{version:02}", self.broker.run)
    }

    fn open(&mut self, connection: &str) -> &mut Open {
        let address = self.broker.address;
        let open = || Open {
            connection: Connection::open(address),
            pending: VecDeque::new(),
        };
        self.connections
            .entry(connection.to_owned())
            .or_insert_with(open)
    }

    fn version_of(&self, request: &Request) -> Result<i16, String> {
        let of_case = match &self.case.versions {
            Some((api, _)) if *api == request.api => self.version,
            _ => None,
        };
        let api = wire::api_by_name(&request.api).ok_or("no such API")?;
        Ok(request.version.or(of_case).unwrap_or(api.stable_max))
    }

    fn encode(&self, request: &Request, correlation_id: i32) -> Result<Bytes, String> {
        let version = self.version_of(request)?;
        let body = self.variables.fill(&request.body)?;
        let t0_ms = self.broker.now_ms - T0_BEFORE_MS;
        let body = request::body_of(&request.api, version, &body, t0_ms)?;
        let key = api_key(&request.api)?;
        let frame = wire::encode_request(key, version, correlation_id, Some("protocol"), &body);
        frame.map_err(|e| e.to_string())
    }

    fn send(&mut self, request: &Request) -> Result<(), String> {
        let version = self.version_of(request)?;
        let key = api_key(&request.api)?;
        let open = self.open(&request.connection);
        open.connection.correlation_id += 1;
        let correlation_id = open.connection.correlation_id;
        let frame = self.encode(request, correlation_id)?;
        let open = self.open(&request.connection);
        open.connection.send_frame(&frame);
        open.pending
            .push_back((key, version, correlation_id, request.clone()));
        Ok(())
    }

    /// Sends a frame written by hand; its first bytes say how the answer is to be read.
    fn send_frame(&mut self, connection: &str, frame: &[u8], own: bool) -> Result<(), String> {
        let int16 = |at: usize| {
            let bytes = frame.get(at..at + 2)?;
            Some(i16::from_be_bytes(bytes.try_into().ok()?))
        };
        let correlation_id = frame
            .get(4..8)
            .and_then(|b| Some(i32::from_be_bytes(b.try_into().ok()?)));
        let shown = Request {
            api: String::new(),
            version: None,
            connection: connection.to_owned(),
            own,
            ordered: false,
            quiet: false,
            until: None,
            except: Vec::new(),
            body: String::new(),
        };
        let open = self.open(connection);
        open.connection.send_frame(frame);
        let (key, version) = (int16(0).unwrap_or(-1), int16(2).unwrap_or(-1));
        open.pending
            .push_back((key, version, correlation_id.unwrap_or(-1), shown));
        Ok(())
    }

    fn request(&mut self, request: &Request) -> Result<Option<Answer>, String> {
        let begun = Instant::now();
        loop {
            self.send(request)?;
            let answer = self.receive(&request.connection)?;
            let done = match &request.until {
                Some((path, value)) => {
                    let lines = self.last.lines();
                    lines.iter().any(|(p, v)| p == path && v == value)
                }
                None => true,
            };
            if done {
                return Ok((!request.quiet).then_some(answer));
            }
            if begun.elapsed() > CHANGE_LIMIT {
                return Err(format!(
                    "{:?} does not come; last: {answer:?}",
                    request.until
                ));
            }
        }
    }

    fn receive(&mut self, connection: &str) -> Result<Answer, String> {
        let open = self.open(connection);
        let received = open.connection.receive();
        let frame = match received {
            Received::Frame(frame) => frame,
            ended => {
                self.connections.remove(connection);
                return Ok(outcome(&ended));
            }
        };
        let Some((key, version, correlation_id, request)) = open.pending.pop_front() else {
            return Ok(vec![(
                "answer".to_owned(),
                "to nothing that was asked".to_owned(),
            )]);
        };
        Ok(self.show(key, version, correlation_id, &request, &frame))
    }

    fn show(
        &mut self,
        key: i16,
        version: i16,
        correlation_id: i32,
        request: &Request,
        frame: &Bytes,
    ) -> Answer {
        let known = wire::api(key).is_some_and(|api| api.versions.contains(&version));
        let version = if known { version } else { 0 };
        let read = wire::decode_response(key, version, frame)
            // A broker that lacks a version of ApiVersions answers in version 0.
            .or_else(|e| match key {
                wire::API_VERSIONS => wire::decode_response(key, 0, frame),
                _ => Err(e),
            });
        let (id, body) = match read {
            Ok(read) => read,
            Err(e) => {
                return vec![(
                    "unreadable".to_owned(),
                    format!("{e}: {}", batch::to_hex(frame)),
                )];
            }
        };
        let body = if request.own { self.own(body) } else { body };
        self.last = body.clone();
        let shown = self
            .placeholders
            .apply(body, &self.variables, request.ordered);
        let mut answer = shown.lines();
        if id != correlation_id {
            answer.push(("correlation_id".to_owned(), "of another request".to_owned()));
        }
        answer
    }

    /// Without the elements of arrays that are named after topics or resources of other cases.
    fn own(&self, value: Value) -> Value {
        const NAMES: &[&str] = &["name", "topic", "topic_name", "resource_name", "group_id"];
        let prefix = self.prefix();
        let is_own = |element: &Value| {
            let mut names = NAMES.iter().filter_map(|name| element.get(name)?.as_text());
            names.all(|name| name.starts_with(&prefix))
        };
        match value {
            Value::Array(elements) => {
                let own = elements.into_iter().filter(is_own);
                Value::Array(own.map(|element| self.own(element)).collect())
            }
            Value::Struct(fields) => Value::Struct(
                fields
                    .into_iter()
                    .map(|(name, value)| (name, self.own(value)))
                    .collect(),
            ),
            other => other,
        }
    }

    fn bind(&mut self, name: &str, path: &str) -> Result<(), String> {
        let lines = self.last.lines();
        let found = lines.iter().find(|(p, _)| p == path);
        let (_, value) = found.ok_or_else(|| format!("no {path} in {}", self.last))?;
        self.variables.set(name, value.trim_matches('"'));
        Ok(())
    }

    fn make_topic(&mut self, name: &str, options: &[(String, String)]) -> Result<(), String> {
        let topic = self.unique(name);
        let mut partitions = 1;
        let mut configs = Vec::new();
        for (key, value) in options {
            match key.as_str() {
                "partitions" => partitions = value.parse().map_err(|_| "no number")?,
                _ => configs.push(serde_json::json!({"name": key, "value": value})),
            }
        }
        let body = serde_json::json!({"topics": [{
            "name": topic, "num_partitions": partitions, "replication_factor": 1,
            "configs": configs,
        }]});
        let mut connection = Connection::open(self.broker.address);
        let body = request::plain("CreateTopics", 7, &body.to_string());
        let answer = connection.ask("CreateTopics", 7, &body)?;
        let created = &answer.get("topics").ok_or("no topics")?.elements()[0];
        if created.get("error_code") != Some(&Value::Integer(0)) {
            return Err(format!("the topic is not made: {created}"));
        }
        if let Some(Value::Uuid(id)) = created.get("topic_id") {
            self.variables.set(format!("{name}.id"), base64_uuid(*id));
        }
        self.variables.set(name, &topic);
        await_leaders(&mut connection, &topic, partitions)
    }

    /// Bytes by hand: hex digits; `00*20` twenty times; `'text'`; `s'text'` and `c'text'` with the
    /// length of a string or of a compact string before it.
    fn bytes(&self, text: &str) -> Result<Vec<u8>, String> {
        let text = self.variables.fill(text)?;
        let mut bytes = Vec::new();
        for word in text.split_whitespace() {
            let quoted = word
                .split_once('\'')
                .map(|(kind, text)| (kind, text.trim_end_matches('\'')));
            match (quoted, word.split_once('*')) {
                (Some((kind, text)), _) => {
                    match kind {
                        "s" => bytes.extend((text.len() as u16).to_be_bytes()),
                        "c" => bytes.push(u8::try_from(text.len() + 1).map_err(|_| "too long")?),
                        _ => {}
                    }
                    bytes.extend(text.as_bytes());
                }
                (_, Some((hex, times))) => {
                    let times = times.parse().map_err(|_| format!("no number: {times}"))?;
                    bytes.extend(batch::from_hex(hex)?.repeat(times));
                }
                _ => bytes.extend(batch::from_hex(word)?),
            }
        }
        Ok(bytes)
    }
}

pub fn outcome(received: &Received) -> Answer {
    let word = match received {
        Received::Frame(_) => "answered",
        Received::Closed => "closed",
        Received::Silent => "silent",
    };
    vec![("answer".to_owned(), word.to_owned())]
}

/// Asks until every partition has a leader that serves it.
fn await_leaders(connection: &mut Connection, topic: &str, partitions: i32) -> Result<(), String> {
    let latest = |index| serde_json::json!({"partition_index": index, "timestamp": -1});
    let body = serde_json::json!({"topics": [{
        "name": topic, "partitions": (0..partitions).map(latest).collect::<Vec<_>>(),
    }]});
    let body = request::plain("ListOffsets", 7, &body.to_string());
    let begun = Instant::now();
    loop {
        let answer = connection.ask("ListOffsets", 7, &body)?;
        let topics = answer.get("topics").ok_or("no topics")?.elements();
        let mut served = topics
            .iter()
            .flat_map(|t| t.get("partitions").map(Value::elements));
        let is_served = |p: &Value| p.get("error_code") == Some(&Value::Integer(0));
        if served.all(|partitions| partitions.iter().all(is_served)) {
            return Ok(());
        }
        if begun.elapsed() > CHANGE_LIMIT {
            return Err(format!("{topic} gets no leader: {answer}"));
        }
    }
}
