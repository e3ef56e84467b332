"""The program inside a sandbox; standard library only.

`zygote` is started once, loads what jobs need and forks a `warden` per job. The warden makes the job's work folder,
forks one `child` per case, watches its bounds and reports what happened. What parts them from each other and from
everything else is the `place`, made of namespaces (`namespaced`) or without (`bare`). Host and warden talk in `frames`
over a socket that no child has.
"""
