"""The program inside a sandbox; standard library only.

`zygote` is started once, loads what jobs need and forks a `warden` per job. The warden makes the job's namespaces and
work folder, forks one `child` per case, watches its bounds and reports what happened. Host and warden talk in `frames`
over a socket that no child has.
"""
