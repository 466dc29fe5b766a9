//! Changes of configurations as records. The values were judged by the caller, who knows the
//! tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::metadata::{
    ConfigRecord, ConfigResource, ConfigResourceType, Configs, MetadataImage, MetadataRecord,
};

/// The records that set or take away (`None`) the named values and leave the others: what an
/// IncrementalAlterConfigs comes to.
pub fn config_change_records(
    image: &MetadataImage,
    resource: &ConfigResource,
    changes: impl IntoIterator<Item = (Arc<str>, Option<Arc<str>>)>,
) -> Vec<MetadataRecord> {
    let current = image.configs(resource);
    // Kafka writes a broker's value again even when it is the same: it makes the broker read the
    // file behind it anew.
    let always = resource.resource_type == ConfigResourceType::Broker;
    let differs = |(name, value): &(Arc<str>, Option<Arc<str>>)| {
        let known = current.and_then(|configs| configs.get(name));
        known != value.as_ref() || (always && value.is_some())
    };
    changes
        .into_iter()
        .filter(differs)
        .map(|(name, value)| ConfigRecord::new(resource, name, value).into())
        .collect()
}

/// The records that leave `resource` with exactly `configs`: what an AlterConfigs comes to.
pub fn config_replacement_records(
    image: &MetadataImage,
    resource: &ConfigResource,
    configs: &Configs,
) -> Vec<MetadataRecord> {
    let current = image.configs(resource).map(|known| known.keys().cloned());
    let known: BTreeSet<Arc<str>> = current.into_iter().flatten().collect();
    let removed = known.into_iter().filter(|name| !configs.contains_key(name));
    let removed = removed.map(|name| (name, None));
    let set = configs
        .iter()
        .map(|(name, value)| (name.clone(), Some(value.clone())));
    config_change_records(image, resource, removed.chain(set))
}
