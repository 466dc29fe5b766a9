//! Configurations of resources: describe and change.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::list_config_resources_request::ListConfigResourcesRequest;
use kafka_protocol::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};

use super::{Admin, Answer, check, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    Topic = 2,
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub kind: ResourceKind,
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct ConfigValue {
    pub name: String,
    pub value: Option<String>,
    pub source: i8,
    pub is_sensitive: bool,
    /// Name, value and source of each, the strongest first.
    pub synonyms: Vec<(String, Option<String>, i8)>,
}

/// The names of Kafka's `ConfigSource`, by number.
pub fn source_name(source: i8) -> &'static str {
    match source {
        1 => "DYNAMIC_TOPIC_CONFIG",
        2 => "DYNAMIC_BROKER_CONFIG",
        3 => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        4 => "STATIC_BROKER_CONFIG",
        5 => "DEFAULT_CONFIG",
        6 => "DYNAMIC_BROKER_LOGGER_CONFIG",
        7 => "DYNAMIC_CLIENT_METRICS_CONFIG",
        8 => "DYNAMIC_GROUP_CONFIG",
        _ => "UNKNOWN",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterOp {
    Set { name: String, value: String },
    Delete { name: String },
}

impl ConfigValue {
    pub const DEFAULT: i8 = 5;

    pub fn is_default(&self) -> bool {
        self.source == ConfigValue::DEFAULT
    }
}

impl Resource {
    pub fn topic(name: &str) -> Resource {
        Resource {
            kind: ResourceKind::Topic,
            name: name.to_owned(),
        }
    }

    /// The one broker that answers for this resource; `None`: any.
    fn broker(&self) -> Option<i32> {
        match self.kind {
            ResourceKind::Broker | ResourceKind::BrokerLogger => self.name.parse().ok(),
            _ => None,
        }
    }
}

impl Admin {
    /// The configurations of a resource, in the order of the answer.
    pub async fn describe_configs(
        &self,
        resource: &Resource,
        include_synonyms: bool,
    ) -> Answer<Vec<ConfigValue>> {
        let row = DescribeConfigsResource::default()
            .with_resource_type(resource.kind as i8)
            .with_resource_name(text(&resource.name))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default()
            .with_resources(vec![row])
            .with_include_synonyms(include_synonyms);
        let call = "describeConfigs";
        let answer = match resource.broker() {
            Some(id) => self.broker(call, id, &request).await?,
            None => self.any(call, &request).await?,
        };
        let mut values = Vec::new();
        for result in answer.results {
            check(result.error_code, result.error_message.as_ref())?;
            values.extend(result.configs.into_iter().map(|config| {
                let synonyms = config.synonyms.iter().map(|s| {
                    let value = s.value.as_ref().map(|v| v.to_string());
                    (s.name.to_string(), value, s.source)
                });
                ConfigValue {
                    name: config.name.to_string(),
                    value: config.value.as_ref().map(|v| v.to_string()),
                    source: config.config_source,
                    is_sensitive: config.is_sensitive,
                    synonyms: synonyms.collect(),
                }
            }));
        }
        Ok(values)
    }

    pub async fn alter_configs(&self, resource: &Resource, ops: &[AlterOp]) -> Answer<()> {
        let row = |op: &AlterOp| match op {
            AlterOp::Set { name, value } => AlterableConfig::default()
                .with_name(text(name))
                .with_config_operation(0)
                .with_value(Some(text(value))),
            AlterOp::Delete { name } => AlterableConfig::default()
                .with_name(text(name))
                .with_config_operation(1)
                .with_value(None),
        };
        let resources = vec![
            AlterConfigsResource::default()
                .with_resource_type(resource.kind as i8)
                .with_resource_name(text(&resource.name))
                .with_configs(ops.iter().map(row).collect()),
        ];
        let request = IncrementalAlterConfigsRequest::default().with_resources(resources);
        let call = "incrementalAlterConfigs";
        let answer = match resource.broker() {
            Some(id) => self.broker(call, id, &request).await?,
            None => self.any(call, &request).await?,
        };
        for result in &answer.responses {
            check(result.error_code, result.error_message.as_ref())?;
        }
        Ok(())
    }

    /// The names of the resources of a kind that have configurations of their own.
    pub async fn list_config_resources(&self, kind: ResourceKind) -> Answer<Vec<String>> {
        let request = ListConfigResourcesRequest::default().with_resource_types(vec![kind as i8]);
        let answer = self.any("listConfigResources", &request).await?;
        check(answer.error_code, None)?;
        let names = answer.config_resources.iter();
        Ok(names
            .map(|resource| resource.resource_name.to_string())
            .collect())
    }
}
