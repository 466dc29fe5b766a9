//! Every request is decided, at the latest when the rebalance it waits for has to be over: the
//! initial delay, a join phase and a new member's grace are all bounded.

use crate::machine::group::tests::simulation::client::REBALANCE_TIMEOUT_MS;
use crate::machine::group::tests::simulation::world::World;

/// A join waits for one rebalance time-out; one that came while static members were away, for a
/// few in a row; nobody waits longer than a new member's five minutes.
const WAIT_MS_MAX: i64 = 300_000 + REBALANCE_TIMEOUT_MS as i64;

pub fn check(world: &mut World) {
    for asked in world.asked.values() {
        // What is decided and waits for its commit only has been taken from the machine already.
        let deadline = asked.sent.plus_ms(WAIT_MS_MAX);
        assert!(world.now.tick <= deadline, "never answered: {asked:?}");
    }
}
