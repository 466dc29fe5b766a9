//! TLS.

use crate::config::table::config_table;

config_table! {
    /// TLS.
    SslConfig;

    Boolean "ssl.allow.dn.changes" = "false", [Any], Low, ReadOnly
        no_effect "no listener speaks TLS",
        "";
    Boolean "ssl.allow.san.changes" = "false", [Any], Low, ReadOnly
        no_effect "no listener speaks TLS",
        "";
    List "ssl.cipher.suites" = "", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.client.auth" = "none", [OneOf(&["required", "requested", "none"])],
        Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    List "ssl.enabled.protocols" = "TLSv1.2,TLSv1.3", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.endpoint.identification.algorithm" = "https", [Any], Low, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Class "ssl.engine.factory.class" = null, [Any], Low, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Password "ssl.key.password" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.keymanager.algorithm" = "SunX509", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Password "ssl.keystore.certificate.chain" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Password "ssl.keystore.key" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.keystore.location" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Password "ssl.keystore.password" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.keystore.type" = "JKS", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.principal.mapping.rules" = "DEFAULT", [Any], Low, ReadOnly
        no_effect "no listener speaks TLS",
        "";
    String "ssl.protocol" = "TLSv1.3", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.provider" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.secure.random.implementation" = null, [Any], Low, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.trustmanager.algorithm" = "PKIX", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Password "ssl.truststore.certificates" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.truststore.location" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    Password "ssl.truststore.password" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
    String "ssl.truststore.type" = "JKS", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "";
}
