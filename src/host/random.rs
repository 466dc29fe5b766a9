//! Randomness from the operating system, for identifiers. What decides takes its randomness as an
//! argument instead.

use uuid::Uuid;

/// A random id (version 4) that does not start with a dash in base64: Kafka avoids those, because
/// its tools would read them as an option (`org.apache.kafka.common.Uuid.randomUuid`).
pub fn uuid() -> Uuid {
    loop {
        let mut bytes = [0u8; 16];
        fill(&mut bytes);
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
        // The first six bits are the first base64 digit; 62 is '-'.
        if uuid.as_u128() >> 122 != 62 {
            return uuid;
        }
    }
}

/// A random number, to seed a generator.
pub fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system has no randomness to give");
}
