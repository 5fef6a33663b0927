"""Run a helper process for work that the confined daemon may not do, or must not do itself.

The daemon asks, with `helper.client` and the functions in `helper.questions`. It forks a
supervisor before it confines itself. The supervisor starts the helper and replaces it when it
dies. The helper forks one worker for each question; the worker answers it and exits
(`helper.server`).
"""
