//! What goes wrong in a run, and how it is put right.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster::{Ended, NODES, SimNode, machine_of_client};
use super::world::World;
use crate::log::tests::faulty_disk::Crash;

/// Something that is to be undone.
#[derive(Debug, Clone, Copy)]
enum Undo {
    Start(usize),
    Resume(usize),
    Heal(IpAddr, IpAddr),
}

#[derive(Default)]
pub struct Faults {
    pub counts: BTreeMap<&'static str, u64>,
    undo: Vec<(Instant, Undo)>,
    /// Something lost what it had not flushed: nothing else fails until all have all again.
    is_losing: bool,
}

impl Faults {
    /// Lets things go wrong for so long.
    pub async fn run(&mut self, world: &mut World, time: Duration) {
        let end = Instant::now() + time;
        let mut next = self.pause(world);
        while Instant::now() < end {
            world.pass(Duration::from_millis(50)).await;
            self.undo_due(world);
            self.notice_ended(world).await;
            if Instant::now() >= next {
                self.one(world).await;
                next = self.pause(world);
            }
        }
    }

    fn pause(&self, world: &mut World) -> Instant {
        let pause_ms = match world.random.one_in(3) {
            true => world.random.below(300),
            false => world.random.below(5000),
        };
        Instant::now() + Duration::from_millis(pause_ms)
    }

    fn count(&mut self, world: &World, what: &'static str, of: &str) {
        *self.counts.entry(what).or_default() += 1;
        world.note(&format!("{what} {of}"));
    }

    fn later(&mut self, world: &mut World, longest_ms: u64, undo: Undo) {
        let after = Duration::from_millis(100 + world.random.below(longest_ms));
        self.undo.push((Instant::now() + after, undo));
    }

    fn undo_due(&mut self, world: &mut World) {
        let now = Instant::now();
        let (due, later) = self.undo.iter().partition(|(at, _)| *at <= now);
        self.undo = later;
        for (_, undo) in due {
            self.undo_one(world, undo);
        }
    }

    fn undo_one(&mut self, world: &mut World, undo: Undo) {
        match undo {
            Undo::Start(at) if !world.nodes[at].is_up() => {
                world.note(&format!("start {}", at + 1));
                world.nodes[at].start();
            }
            Undo::Start(_) => {}
            Undo::Resume(at) => {
                world.note(&format!("resume {}", at + 1));
                world.nodes[at].resume();
            }
            Undo::Heal(from, to) => {
                world.note(&format!("heal {from} to {to}"));
                world.network.heal(from, to);
            }
        }
    }

    /// A node whose disk has failed has to be started again.
    async fn notice_ended(&mut self, world: &mut World) {
        for at in 0..NODES {
            let Some(ended) = world.nodes[at].ended().await else {
                continue;
            };
            let has_failed = world.nodes[at].disk.has_failed();
            assert!(
                has_failed && ended != Ended::Stopped,
                "node {} ended by itself: {ended:?}",
                at + 1
            );
            self.count(world, "failed", &format!("{} {ended:?}", at + 1));
            world.nodes[at].kill(Crash::Kill);
            self.later(world, 5000, Undo::Start(at));
        }
    }

    /// Everything that lost what was not flushed is back and has it again.
    fn may_lose(&self, world: &World) -> bool {
        let is_well = |node: &SimNode| !node.is_paused && node.node().is_some();
        self.undo.is_empty() && world.nodes.iter().all(is_well) && world.all_in_sync().is_ok()
    }

    async fn one(&mut self, world: &mut World) {
        self.is_losing &= !self.may_lose(world);
        if self.is_losing {
            return;
        }
        let at = world.random.below(NODES as u64) as usize;
        let name = (at + 1).to_string();
        match world.random.below(12) {
            0 | 1 if world.nodes[at].is_up() => {
                self.count(world, "kill", &name);
                world.nodes[at].kill(Crash::Kill);
                self.later(world, 8000, Undo::Start(at));
            }
            2 | 3 if self.may_lose(world) => {
                let crash =
                    Crash::POWER_CUTS[world.random.below(Crash::POWER_CUTS.len() as u64) as usize];
                self.count(world, "power cut", &format!("{name} {crash:?}"));
                self.is_losing = true;
                world.nodes[at].kill(crash);
                self.later(world, 8000, Undo::Start(at));
            }
            4 if self.may_lose(world) => {
                self.count(world, "disk error", &name);
                self.is_losing = true;
                let n = 1 + world.random.below(30);
                match world.random.one_in(3) {
                    true => world.nodes[at].disk.fill_at(n),
                    false => world.nodes[at].disk.fail_at(n),
                }
                // Until it is noticed nothing else may be lost.
                self.later(world, 3000, Undo::Resume(at));
            }
            5 if world.nodes[at].node().is_some() && !world.nodes[at].is_paused => {
                self.count(world, "stop", &name);
                let ended = world.nodes[at].stop().await;
                world.note(&format!("stopped {name}: {ended:?}"));
                self.later(world, 3000, Undo::Start(at));
            }
            6 if world.nodes[at].is_up() && !world.nodes[at].is_paused => {
                self.count(world, "pause", &name);
                world.nodes[at].pause();
                self.later(world, 12_000, Undo::Resume(at));
            }
            7 => {
                let other = self.other(world, at);
                self.count(world, "reset", &format!("{name} and {other}"));
                world.network.reset(world.nodes[at].machine, other);
            }
            8 => {
                let other = self.other(world, at);
                self.cut(world, "cut one way", &[(world.nodes[at].machine, other)]);
            }
            9 => {
                let own = world.nodes[at].machine;
                let other = self.other(world, at);
                self.cut(world, "cut", &[(own, other), (other, own)]);
            }
            10 => {
                let own = world.nodes[at].machine;
                let others = world.nodes.iter().map(|node| node.machine);
                let others: Vec<_> = others.filter(|other| *other != own).collect();
                let links = others
                    .iter()
                    .flat_map(|other| [(own, *other), (*other, own)]);
                let mut links: Vec<_> = links.collect();
                if world.random.one_in(3) {
                    links.retain(|(from, _)| *from == own);
                }
                self.cut(world, "isolate", &links);
            }
            11 if self.may_lose(world) && world.all_admitted().is_ok() => {
                self.count(world, "other metadata disk", &name);
                self.is_losing = true;
                world.nodes[at].kill(Crash::Kill);
                world.nodes[at].swap_metadata();
                self.later(world, 8000, Undo::Start(at));
            }
            _ => {}
        }
    }

    /// Another node, or a client.
    fn other(&self, world: &mut World, at: usize) -> IpAddr {
        if world.random.one_in(3) {
            let clients = world.clients.len() as u64 - 1;
            return machine_of_client(world.random.below(clients) as usize);
        }
        let step = 1 + world.random.below(NODES as u64 - 1) as usize;
        world.nodes[(at + step) % NODES].machine
    }

    fn cut(&mut self, world: &mut World, what: &'static str, links: &[(IpAddr, IpAddr)]) {
        self.count(world, what, &format!("{links:?}"));
        let after = Duration::from_millis(100 + world.random.below(12_000));
        for (from, to) in links {
            world.network.cut(*from, *to);
            self.undo
                .push((Instant::now() + after, Undo::Heal(*from, *to)));
        }
    }

    /// Puts everything right.
    pub async fn heal(&mut self, world: &mut World) {
        world.note("heal all");
        self.undo.clear();
        world.network.heal_all();
        self.notice_ended(world).await;
        self.undo.clear();
        for node in &mut world.nodes {
            node.resume();
            // An error that has not come yet will not come any more.
            node.disk.fail_no_more();
            if node.disk.has_failed() {
                // Whoever runs on it would fail later on.
                node.kill(Crash::Kill);
            }
            if !node.is_up() {
                node.start();
            }
        }
    }
}
