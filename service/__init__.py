"""The grading service: gateway, dispatchers, workers and the command line.

Start reading at `service.app` (a request's way in), then `service.dispatch.local` and `service.worker`, then
`service.grading` (how a task becomes a verdict).
"""
