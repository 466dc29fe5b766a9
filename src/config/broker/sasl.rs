//! SASL.

use crate::config::table::config_table;

config_table! {
    /// SASL.
    SaslConfig;

    Class "sasl.client.callback.handler.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "A class that answers what SASL asks of this node as a client.";
    List "sasl.enabled.mechanisms" = "GSSAPI", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "The SASL mechanisms that clients may use.";
    Password "sasl.jaas.config" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "The JAAS login line with the credentials of this node or its users.";
    String "sasl.kerberos.kinit.cmd" = "/usr/bin/kinit", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "The path of kinit.";
    Long "sasl.kerberos.min.time.before.relogin" = "60000", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "How long a Kerberos login rests at least before the next.";
    List "sasl.kerberos.principal.to.local.rules" = "DEFAULT", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "Rules that make a short user name from a Kerberos principal.";
    String "sasl.kerberos.service.name" = null, [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "The Kerberos name that the brokers run as.";
    Double "sasl.kerberos.ticket.renew.jitter" = "0.05", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "How much the time of a ticket's renewal varies at random.";
    Double "sasl.kerberos.ticket.renew.window.factor" = "0.8", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "After which share of its life a ticket is renewed.";
    Class "sasl.login.callback.handler.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "A class that answers what a SASL login asks.";
    Class "sasl.login.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The class that logs in.";
    Int "sasl.login.connect.timeout.ms" = null, [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "How long to wait for a connection to the provider of tokens.";
    Int "sasl.login.read.timeout.ms" = null, [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "How long to wait for an answer of the provider of tokens.";
    Short "sasl.login.refresh.buffer.seconds" = "300", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "How long before its end a token is renewed at the latest.";
    Short "sasl.login.refresh.min.period.seconds" = "60", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "How long a new token is used at least.";
    Double "sasl.login.refresh.window.factor" = "0.8", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "After which share of its life a token is renewed.";
    Double "sasl.login.refresh.window.jitter" = "0.05", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "How much the time of a token's renewal varies at random.";
    Long "sasl.login.retry.backoff.max.ms" = "10000", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "The longest wait before the provider of tokens is asked again.";
    Long "sasl.login.retry.backoff.ms" = "100", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "The first wait before the provider of tokens is asked again.";
    String "sasl.mechanism.controller.protocol" = "GSSAPI", [Any], High, ReadOnly
        no_effect "no listener speaks SASL",
        "The SASL mechanism on connections to controllers.";
    String "sasl.mechanism.inter.broker.protocol" = "GSSAPI", [Any], Medium, PerBroker
        no_effect "no listener speaks SASL",
        "The SASL mechanism on connections between brokers.";
    Boolean "sasl.oauthbearer.allow.unverified.audience" = "false", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Accept a token without looking at whom it is for.";
    Boolean "sasl.oauthbearer.allow.unverified.issuer" = "false", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Accept a token without looking at who made it.";
    String "sasl.oauthbearer.assertion.algorithm" = "RS256", [OneOfIgnoreCase(&["ES256", "RS256"])],
        Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "How an assertion is signed.";
    String "sasl.oauthbearer.assertion.claim.aud" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Whom an assertion says it is for.";
    Int "sasl.oauthbearer.assertion.claim.exp.seconds" = "300", [Between(0, 86_400)], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "How long an assertion is good.";
    String "sasl.oauthbearer.assertion.claim.iss" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Who an assertion says made it.";
    Boolean "sasl.oauthbearer.assertion.claim.jti.include" = "false", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Give each assertion an id of its own.";
    Int "sasl.oauthbearer.assertion.claim.nbf.seconds" = "60", [Between(0, 3600)], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "How long before its making an assertion is already good.";
    String "sasl.oauthbearer.assertion.claim.sub" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Whom an assertion is about.";
    String "sasl.oauthbearer.assertion.file" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "A file with an assertion made elsewhere.";
    String "sasl.oauthbearer.assertion.private.key.file" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The file of the key that signs assertions.";
    Password "sasl.oauthbearer.assertion.private.key.passphrase" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The passphrase of that key.";
    String "sasl.oauthbearer.assertion.template.file" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "A file with the fixed parts of an assertion.";
    String "sasl.oauthbearer.client.credentials.client.id" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The id that this node shows the provider of tokens.";
    Password "sasl.oauthbearer.client.credentials.client.secret" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The secret that goes with that id.";
    Int "sasl.oauthbearer.clock.skew.seconds" = "30", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "How far the clocks of this node and the provider may differ.";
    List "sasl.oauthbearer.expected.audience" = "", [Any], High, ReadOnly
        no_effect "no listener speaks SASL",
        "Whom a token must be for.";
    String "sasl.oauthbearer.expected.issuer" = null, [Any], High, ReadOnly
        no_effect "no listener speaks SASL",
        "Who must have made a token.";
    Long "sasl.oauthbearer.jwks.endpoint.refresh.ms" = "3600000", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "How often the keys that check tokens are read anew.";
    Long "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" = "10000", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "The longest wait before those keys are asked for again.";
    Long "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" = "100", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "The first wait before those keys are asked for again.";
    String "sasl.oauthbearer.jwks.endpoint.url" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Where the keys that check tokens are read.";
    Class "sasl.oauthbearer.jwt.retriever.class" = "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", [Any],
        Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The class that gets tokens.";
    Class "sasl.oauthbearer.jwt.validator.class" = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", [Any],
        Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The class that checks tokens.";
    String "sasl.oauthbearer.scope" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The scope that a token is asked for.";
    String "sasl.oauthbearer.scope.claim.name" = "scope", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "The claim of a token that holds its scope.";
    String "sasl.oauthbearer.sub.claim.name" = "sub", [Any], Low, ReadOnly
        no_effect "no listener speaks SASL",
        "The claim of a token that holds its user.";
    String "sasl.oauthbearer.token.endpoint.url" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "Where tokens are asked for.";
    Class "sasl.server.callback.handler.class" = null, [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "A class that answers what SASL asks of this node as a server.";
    Int "sasl.server.max.receive.size" = "524288", [Any], Medium, ReadOnly
        no_effect "no listener speaks SASL",
        "The longest message of a client while it authenticates.";
}
