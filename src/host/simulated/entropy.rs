//! Randomness of a simulated world: one thread whose every random byte comes from a seed.
//!
//! The standard library (the order of its hash maps), the runtime (which branch of a `select!` is
//! looked at first), openraft (its election time-outs) and [`crate::host::random`] all draw from
//! `getrandom`. In the test binary that is the function below: it answers threads that have a seed
//! from it, and all others from the operating system.

use std::cell::Cell;

use crate::types::seeded::Random;

thread_local! {
    static ENTROPY: Cell<Option<u64>> = const { Cell::new(None) };
}

/// All randomness of this thread comes from `seed` from now on. Must be the first thing that a new
/// thread does: what was drawn before stays drawn.
pub fn seed_this_thread(seed: u64) {
    ENTROPY.set(Some(seed));
}

/// Fills `buffer` if this thread has a seed.
fn fill(buffer: &mut [u8]) -> bool {
    let Ok(Some(state)) = ENTROPY.try_with(Cell::get) else {
        return false;
    };
    let mut random = Random::new(state);
    for chunk in buffer.chunks_mut(8) {
        let bytes = random.draw().to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
    ENTROPY.set(Some(random.state()));
    true
}

/// Takes the place of the C library's function of this name.
///
/// # Safety
/// `buffer` must be valid for writes of `len` bytes, as for the function it replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, len: usize, flags: u32) -> isize {
    if len > 0 {
        // SAFETY: the caller says so.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, len) };
        if fill(bytes) {
            return len as isize;
        }
    }
    // SAFETY: the system call has the arguments that the caller gave.
    unsafe { libc::syscall(libc::SYS_getrandom, buffer, len, flags) as isize }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::host::random;

    fn drawn(seed: u64) -> Vec<u64> {
        let thread = std::thread::spawn(move || {
            seed_this_thread(seed);
            let set: HashSet<u64> = (0..20).collect();
            let mut drawn: Vec<u64> = set.into_iter().collect();
            drawn.push(random::seed());
            drawn
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_thread_with_a_seed_draws_the_same_again() {
        assert_eq!(drawn(7), drawn(7));
        let (one, other) = (drawn(7), drawn(8));
        assert_ne!(one[20], other[20]);
        assert_ne!(one[..20], other[..20]);
    }
}
