//! SASL.

use crate::config::table::config_table;

config_table! {
    /// SASL.
    SaslConfig;

    Class "sasl.client.callback.handler.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    List "sasl.enabled.mechanisms" = "GSSAPI", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Password "sasl.jaas.config" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    String "sasl.kerberos.kinit.cmd" = "/usr/bin/kinit", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Long "sasl.kerberos.min.time.before.relogin" = "60000", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    List "sasl.kerberos.principal.to.local.rules" = "DEFAULT", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    String "sasl.kerberos.service.name" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Double "sasl.kerberos.ticket.renew.jitter" = "0.05", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Double "sasl.kerberos.ticket.renew.window.factor" = "0.8", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Class "sasl.login.callback.handler.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Class "sasl.login.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Int "sasl.login.connect.timeout.ms" = null, [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Int "sasl.login.read.timeout.ms" = null, [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Short "sasl.login.refresh.buffer.seconds" = "300", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Short "sasl.login.refresh.min.period.seconds" = "60", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Double "sasl.login.refresh.window.factor" = "0.8", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Double "sasl.login.refresh.window.jitter" = "0.05", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Long "sasl.login.retry.backoff.max.ms" = "10000", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Long "sasl.login.retry.backoff.ms" = "100", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.mechanism.controller.protocol" = "GSSAPI", [Any], High, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.mechanism.inter.broker.protocol" = "GSSAPI", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "";
    Boolean "sasl.oauthbearer.allow.unverified.audience" = "false", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Boolean "sasl.oauthbearer.allow.unverified.issuer" = "false", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.algorithm" = "RS256", [OneOfIgnoreCase(&["ES256", "RS256"])],
        Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.claim.aud" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Int "sasl.oauthbearer.assertion.claim.exp.seconds" = "300", [Between(0, 86_400)], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.claim.iss" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Boolean "sasl.oauthbearer.assertion.claim.jti.include" = "false", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Int "sasl.oauthbearer.assertion.claim.nbf.seconds" = "60", [Between(0, 3600)], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.claim.sub" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.file" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.private.key.file" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Password "sasl.oauthbearer.assertion.private.key.passphrase" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.assertion.template.file" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.client.credentials.client.id" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Password "sasl.oauthbearer.client.credentials.client.secret" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Int "sasl.oauthbearer.clock.skew.seconds" = "30", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    List "sasl.oauthbearer.expected.audience" = "", [Any], High, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.expected.issuer" = null, [Any], High, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Long "sasl.oauthbearer.jwks.endpoint.refresh.ms" = "3600000", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Long "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" = "10000", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Long "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" = "100", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.jwks.endpoint.url" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Class "sasl.oauthbearer.jwt.retriever.class" = "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", [Any],
        Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Class "sasl.oauthbearer.jwt.validator.class" = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", [Any],
        Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.scope" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.scope.claim.name" = "scope", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.sub.claim.name" = "sub", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    String "sasl.oauthbearer.token.endpoint.url" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Class "sasl.server.callback.handler.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
    Int "sasl.server.max.receive.size" = "524288", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "";
}
