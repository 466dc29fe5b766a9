//! In which of a broker's log directories a replica is, or may begin (KIP-858).
//!
//! 1. A replica that is counted on for acknowledged records (in the ISR or the ELR, or to be
//!    compared because all that were in sync have crashed) is in the directory that the metadata
//!    names, or is waited for: an empty log elsewhere would pass for all that was acknowledged. So
//!    would one in that directory, where its log was and is not any more.
//! 2. While a directory is offline, what is not found may be in that one. Only what is new begins.
//! 3. What is found where the metadata does not expect it is told to the controller, unless the
//!    directory that it names is away and may have more (1). A directory that got its id in this
//!    run had another one before, and what is in it was always there.

use crate::metadata::DirectoryId;

/// What the metadata says of this broker's replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    pub directory: DirectoryId,
    /// Acknowledged records may be nowhere else.
    pub is_counted_on: bool,
    /// It was not there when this broker started.
    pub is_new: bool,
}

/// The directories of this broker.
#[derive(Debug, Clone, Default)]
pub struct OwnDirs {
    pub working: Vec<DirectoryId>,
    /// Those of `working` that got their id in this run.
    pub fresh: Vec<DirectoryId>,
    /// One is offline, or not among the directories any more.
    pub is_some_missing: bool,
    /// One is offline.
    pub is_some_offline: bool,
}

/// Where a replica without a log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    In(DirectoryId),
    /// In whichever directory the broker likes.
    Anywhere,
    /// Nowhere: its log is in a directory that is not here, or was lost before.
    Waits,
    /// As `Waits`, and the metadata does not know that yet.
    IsLost,
}

/// `was_here`: there are signs of its log in this broker's directories, and it cannot be used.
pub fn begin(replica: Assigned, was_here: bool, own: &OwnDirs) -> Begin {
    let Assigned {
        directory,
        is_counted_on,
        is_new,
        ..
    } = replica;
    if own.working.contains(&directory) {
        return match is_counted_on && was_here {
            true => Begin::IsLost,
            false => Begin::In(directory),
        };
    }
    match directory.is_undecided() {
        // Who decides anew in this run knows that it was lost.
        true if was_here && is_counted_on && !is_new => Begin::IsLost,
        true if is_new || !own.is_some_missing => Begin::Anywhere,
        true if is_counted_on => Begin::IsLost,
        _ if is_counted_on || own.is_some_offline => Begin::Waits,
        _ => Begin::Anywhere,
    }
}

/// Whether the controller is to hear that the replica's log is in `actual`.
pub fn is_to_be_told(replica: Assigned, actual: DirectoryId, own: &OwnDirs) -> bool {
    let named = replica.directory;
    let may_differ = !replica.is_counted_on
        || named.is_undecided()
        || named == DirectoryId::LOST
        || own.working.contains(&named)
        || own.fresh.contains(&actual);
    actual != named && may_differ
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn dir(number: u128) -> DirectoryId {
        DirectoryId(Uuid::from_u128(1000 + number))
    }

    fn own(working: &[u128]) -> OwnDirs {
        OwnDirs {
            working: working.iter().map(|number| dir(*number)).collect(),
            ..OwnDirs::default()
        }
    }

    fn assigned(directory: DirectoryId) -> Assigned {
        Assigned {
            directory,
            is_counted_on: true,
            is_new: false,
        }
    }

    #[test]
    fn a_replica_begins_where_the_metadata_says() {
        let own = own(&[1, 2]);
        assert_eq!(begin(assigned(dir(2)), false, &own), Begin::In(dir(2)));
        for undecided in [DirectoryId::UNASSIGNED, DirectoryId::MIGRATING] {
            assert_eq!(begin(assigned(undecided), false, &own), Begin::Anywhere);
        }
    }

    #[test]
    fn what_is_counted_on_waits_for_its_directory() {
        let mut own = own(&[1, 2]);
        own.is_some_missing = true;
        let gone = assigned(dir(3));
        assert_eq!(begin(gone, false, &own), Begin::Waits);
        assert_eq!(
            begin(assigned(DirectoryId::LOST), false, &own),
            Begin::Waits
        );
        let undecided = assigned(DirectoryId::UNASSIGNED);
        assert_eq!(begin(undecided, false, &own), Begin::IsLost);
        // Others have the records, and no directory may come back.
        let follower = Assigned {
            is_counted_on: false,
            ..gone
        };
        assert_eq!(begin(follower, false, &own), Begin::Anywhere);
        own.is_some_offline = true;
        assert_eq!(begin(follower, false, &own), Begin::Waits);
        let is_new = true;
        let undecided = Assigned {
            is_new,
            ..undecided
        };
        assert_eq!(begin(undecided, false, &own), Begin::Anywhere);
    }

    #[test]
    fn a_log_that_is_gone_from_its_directory_is_lost_unless_others_have_the_records() {
        let own = own(&[1, 2]);
        let replica = assigned(dir(1));
        assert_eq!(begin(replica, true, &own), Begin::IsLost);
        let undecided = assigned(DirectoryId::UNASSIGNED);
        assert_eq!(begin(undecided, true, &own), Begin::IsLost);
        // The metadata knows it.
        let lost = assigned(DirectoryId::LOST);
        assert_eq!(begin(lost, true, &own), Begin::Waits);
        let is_counted_on = false;
        let follower = Assigned {
            is_counted_on,
            ..replica
        };
        assert_eq!(begin(follower, true, &own), Begin::In(dir(1)));
        // It was given up: an unclean election has left its place open.
        let is_new = true;
        let given_up = Assigned {
            is_new,
            ..undecided
        };
        assert_eq!(begin(given_up, true, &own), Begin::Anywhere);
        let is_new = Assigned { is_new, ..replica };
        assert_eq!(begin(is_new, true, &own), Begin::IsLost);
    }

    #[test]
    fn a_log_is_told_of_unless_a_newer_one_may_be_away() {
        let mut own = own(&[1, 2]);
        let told = |named, actual, own: &OwnDirs| is_to_be_told(assigned(named), actual, own);
        assert!(!told(dir(1), dir(1), &own));
        assert!(told(dir(2), dir(1), &own));
        for open in [
            DirectoryId::UNASSIGNED,
            DirectoryId::MIGRATING,
            DirectoryId::LOST,
        ] {
            assert!(told(open, dir(1), &own));
        }
        assert!(!told(dir(3), dir(1), &own));
        let follower = Assigned {
            is_counted_on: false,
            ..assigned(dir(3))
        };
        assert!(is_to_be_told(follower, dir(1), &own));
        own.fresh.push(dir(1));
        assert!(told(dir(3), dir(1), &own));
    }
}
