//! Listeners and connections: frames, order of replies, the pipeline every request passes.
