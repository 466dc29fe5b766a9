//! The client side: dial, negotiate versions, pipeline requests (used between brokers and by cli/).
