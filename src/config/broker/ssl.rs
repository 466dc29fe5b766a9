//! TLS.

use crate::config::table::config_table;

config_table! {
    /// TLS.
    SslConfig;

    Boolean "ssl.allow.dn.changes" = "false", [Any], Low, ReadOnly
        no_effect "no listener speaks TLS",
        "Take a new certificate with another distinguished name while the broker runs.";
    Boolean "ssl.allow.san.changes" = "false", [Any], Low, ReadOnly
        no_effect "no listener speaks TLS",
        "Take a new certificate with other alternative names while the broker runs.";
    List "ssl.cipher.suites" = "", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The cipher suites of TLS; empty for the library's own.";
    String "ssl.client.auth" = "none", [OneOf(&["required", "requested", "none"])],
        Medium, PerBroker
        no_effect "no listener speaks TLS",
        "Whether clients have to show a certificate, are asked for one, or not.";
    List "ssl.enabled.protocols" = "TLSv1.2,TLSv1.3", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The versions of TLS that are served.";
    String "ssl.endpoint.identification.algorithm" = "https", [Any], Low, PerBroker
        no_effect "no listener speaks TLS",
        "How the name in a server's certificate is checked; empty for not at all.";
    Class "ssl.engine.factory.class" = null, [Any], Low, PerBroker
        no_effect "no listener speaks TLS",
        "A class that makes TLS engines.";
    Password "ssl.key.password" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The password of the private key.";
    String "ssl.keymanager.algorithm" = "SunX509", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The algorithm of Java's key manager.";
    Password "ssl.keystore.certificate.chain" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The certificates of this node as PEM text.";
    Password "ssl.keystore.key" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The private key of this node as PEM text.";
    String "ssl.keystore.location" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The file of this node's key and certificates.";
    Password "ssl.keystore.password" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The password of that file.";
    String "ssl.keystore.type" = "JKS", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The format of that file.";
    String "ssl.principal.mapping.rules" = "DEFAULT", [Any], Low, ReadOnly
        no_effect "no listener speaks TLS",
        "Rules that make a user name from the name in a certificate.";
    String "ssl.protocol" = "TLSv1.3", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The version of TLS to begin with.";
    String "ssl.provider" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The Java provider of TLS.";
    String "ssl.secure.random.implementation" = null, [Any], Low, PerBroker
        no_effect "no listener speaks TLS",
        "The source of randomness for TLS.";
    String "ssl.trustmanager.algorithm" = "PKIX", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The algorithm of Java's trust manager.";
    Password "ssl.truststore.certificates" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The certificates this node trusts as PEM text.";
    String "ssl.truststore.location" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The file of the certificates this node trusts.";
    Password "ssl.truststore.password" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The password of that file.";
    String "ssl.truststore.type" = "JKS", [Any], Medium, PerBroker
        no_effect "no listener speaks TLS",
        "The format of that file.";
}
