"""How a harness reaches a language model: gateway, cache, usage, providers.

`PLUGS` names the settings class of every built-in model, which builds it. Any other name is
that of a hosted model.
"""

PLUGS = {
    "embedded": "coevolve.models.model_settings:EmbeddedModel",
    "*": "coevolve.models.model_settings:HostedModel",
}
