"""A helper process for the work that the daemon may not or should not do itself.

The daemon confines itself, so it may not look at other processes. And it should not read the files
of a project: a hostile repository could exploit a parser, and a dead disk could hang the read.

Before it confines itself, the daemon forks a supervisor. The supervisor starts the helper, and
starts another one when the helper dies. The helper forks one worker for each question. The worker
answers it and exits (`helper.server`). The daemon asks with `helper.client`. `helper.folders`,
`helper.processes`, `helper.terminals`, and `helper.projects` have the questions. In each of them,
the functions `ask_` run in the daemon, and the functions `answer_` in a worker.
"""
