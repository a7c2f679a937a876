"""Where trials run: workers, isolation of candidate code, failures and retries.

`PLUGS` names the settings class of every built-in executor, which builds it.
"""

PLUGS = {
    "local": "coevolve.executors.executor_settings:LocalSettings",
    "ray": "coevolve.executors.ray.ray_settings:RaySettings",
}
