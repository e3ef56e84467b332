"""The program inside a sandbox; standard library only.

`main` loads what jobs need, gives up what no job needs, and becomes two processes. The `warden` lasts as long as the
sandbox: it alone talks to the host, in `frames`, hands out jobs and watches their bounds. The `zygote` forks each
case's process (`child`) and collects it; what a process is to do is in a `brief`, which the zygote passes on unread, so
that nothing of one job is in the memory that the next one inherits. What parts the processes of a job from all others
is the `place`, made of namespaces (`namespaced`) or without (`bare`).
"""
