"""The attacks on the wall, as data. To add one, add an entry.

Each attack is a line of Python that a program inside runs; see `INTERPRETER` in `support.walls`
for the functions that it may use. A refusal is an OSError. Each attack names the *layer* that
refuses it. Without that layer, the same line must succeed, which shows that the attack is real. A
line that succeeds must leave everything as it was.

The paths are those of `AttackTargets`. `{gone}` is a folder that was taken away after the program
had made it its working directory, and had opened it as `FOLDER` (for reading), `PLACE` (O_PATH),
and `/proc/self/fd`.
"""

# ruff: noqa: E501 - one line for each attack

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Layer(Enum):
    """The layer that refuses an attack. Its control runs without that layer."""

    VIEW = "mounts and namespaces"
    """The control runs outside."""
    PROTECTION = "read-only over-mounts in a root"
    LANDLOCK = "Landlock"
    SECCOMP = "seccomp"
    MOUNT_CALLS = "seccomp, against mounts"
    """The control has no Landlock either, which refuses most of them, too."""
    CAPABILITIES = "no capabilities"
    """The control has capabilities, and nothing else that refuses mounts."""
    NETWORK = "--no-network"
    LOCKS = "locked mounts"
    """The attack runs without the layers that refuse it, too. The control runs outside."""


class Attack(NamedTuple):
    """One attack. `only_root` says that its control succeeds for root only."""

    name: str
    layer: Layer
    line: str
    only_root: bool = False


_VIEW = {
    "read a pending project": "read('{pending}/key')",
    "list a pending project": "os.listdir('{pending}')",
    "stat a pending project": "os.stat('{pending}')",
    "enter a pending project": "os.chdir('{pending}'); os.chdir('{home}')",
    "read through a link in a root": "read('{root}/link/key')",
    "read through .. from a root": "read('{root}/../pending/key')",
    "read through proc's root": "read('/proc/self/root{pending}/key')",
    "read through the root of process 1's parent": "read('/proc/{victim}/root{pending}/key')",
    "read through a process's working directory": "os.listdir('/proc/{victim}/cwd')",
    "read a process's environment": "read('/proc/{victim}/environ')",
    "list a process's descriptors": "os.listdir('/proc/{victim}/fd')",
    "write a process's memory": "os.close(os.open('/proc/{victim}/mem', os.O_RDWR))",
    "signal a process": "os.kill({victim}, 0)",
    "open a process as a pidfd": "os.close(os.pidfd_open({victim}))",
    "trace a process": "in_child(lambda: checked(libc.ptrace(0x4206, {victim}, 0, 0)))",
    "read a process's scheduling": "os.sched_getaffinity({victim})",
    "change a process's priority": "os.setpriority(os.PRIO_PROCESS, {victim}, 19)",
    "write into a pending project": "make('{pending}/new')",
    "create beside a root": "make('{base}/new')",
    "create a folder beside a root": "os.mkdir('{base}/newer'); os.rmdir('{base}/newer')",
    "rename the folder of a root": "there_and_back('{root}', '{root}2')",
    "link a file out of a pending project": "os.link('{pending}/key', '{root}/stolen'); os.unlink('{root}/stolen')",
    "move a file out of a pending project": "there_and_back('{pending}/key', '{root}/stolen')",
    "run a program in a pending project": "subprocess.run(['{pending}/program'], check=True)",
    "connect to a socket in a pending project": "connect(socket.AF_UNIX, '{pending}/socket')",
    "bind a socket in a pending project": "socket.socket(socket.AF_UNIX).bind('{pending}/mine'); os.unlink('{pending}/mine')",
    "read an ssh key": "read('{home}/.ssh/id_ed25519')",
    "list the ssh folder": "os.listdir('{home}/.ssh')",
    "read a token in the home folder": "names('{home}/.npmrc', 'abcdef')",
    "append to the shell's settings": "append('{home}/.bashrc')",
    "append to git's settings": "append('{home}/.gitconfig')",
    "replace a program of the user": "append('{home}/bin/tool')",
    "add a program of the user": "make('{home}/bin/git')",
    "list /var/spool": "os.listdir('/var/spool')",
    "read a temporary file": "read('{temporary}')",
    "list the mounts of the machine": "os.listdir('/mnt')",
    "list /srv": "os.listdir('/srv')",
    "list /boot": "os.listdir('/boot')",
    "list /var/cache": "os.listdir('/var/cache')",
    "list /var/log": "os.listdir('/var/log')",
    "attach a shared memory segment": "checked(libc.shmget({segment}, 0, 0))",
    "read the denied project": "read('{root}/denied/key')",
    "enter a folder of the denied project": "os.chdir('{root}/denied/inner'); os.chdir('{home}')",
    "write into the denied project": "make('{root}/denied/new')",
    "move the denied project away": "there_and_back('{root}/denied', '{root}/moved')",
    "write into a read-only root": "make('{read_only}/new')",
    "append in a read-only root": "append('{read_only}/file')",
    "truncate in a read-only root": "os.truncate('{read_only}/file', os.stat('{read_only}/file').st_size)",
    "remove from a read-only root": "there_and_back('{read_only}/file', '{read_only}/moved')",
    "change a mode in a read-only root": "os.chmod('{read_only}/file', 0o644)",
    "change times in a read-only root": "os.utime('{read_only}/file')",
    "change an attribute in a read-only root": "os.setxattr('{read_only}/file', 'user.a', b'1'); os.removexattr('{read_only}/file', 'user.a')",
    "link in a read-only root": "os.symlink('x', '{read_only}/l'); os.unlink('{read_only}/l')",
    "read a process's memory": "memory(libc.process_vm_readv, {victim})",
    "change a process's memory": "memory(libc.process_vm_writev, {victim})",
    "find a process's group": "os.getpgid({victim})",
    "find a process's session": "os.getsid({victim})",
    "signal a process's group": "os.killpg(os.getpgid({victim}), 0)",
    "signal a thread": "checked(libc.tgkill({victim}, {victim}, 0))",
    "queue a signal": "checked(libc.sigqueue({victim}, 0, None))",
    "read a process's policy": "os.sched_getscheduler({victim})",
    "read a process's I/O priority": "reached(libc.syscall(252, 1, {victim}))",
    "read a process's mappings": "read('/proc/{victim}/maps')",
    "read a process's command line": "read('/proc/{victim}/cmdline')",
    "find a process's program": "os.readlink('/proc/{victim}/exe')",
    "read a process's mounts": "read('/proc/{victim}/mountinfo')",
    "open a process's namespace": "os.close(os.open('/proc/{victim}/ns/mnt', os.O_RDONLY))",
    "enter a process's user namespace": "in_child(lambda: reached(libc.setns(os.open('/proc/{victim}/ns/user', os.O_RDONLY), 0), 22))",
    "signal a process by a descriptor from outside": "signal.pidfd_send_signal(take('{root}/give-process'), 0)",
    "take a descriptor of a process": "os.close(checked(libc.syscall(438, take('{root}/give-process'), 0, 0)))",
    "open a message queue": "checked(libc.msgget({segment}, 0))",
    "open a semaphore": "checked(libc.semget({segment}, 0, 0))",
    "read a file in shared memory": "read('{shared}')",
    "connect to a display": "connect(socket.AF_UNIX, '{display}')",
    "connect to rootsd's control socket": "connect(socket.AF_UNIX, '{base}/runtime/ctl/control.sock')",
    "read the decisions": "read('{base}/runtime/decisions.db')",
    "connect to an ssh agent": "connect(socket.AF_UNIX, '{home}/.ssh/agent')",
    "connect to a gpg agent": "connect(socket.AF_UNIX, '{home}/.gnupg/S.gpg-agent')",
    "connect to docker": "connect(socket.AF_UNIX, '{home}/.docker/docker.sock')",
    "send to a datagram socket": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect('{pending}/datagrams')",
    "read .aws/credentials": "read('{home}/.aws/credentials')",
    "read .netrc": "read('{home}/.netrc')",
    "read .git-credentials": "read('{home}/.git-credentials')",
    "read .kube/config": "read('{home}/.kube/config')",
    "read .docker/config.json": "read('{home}/.docker/config.json')",
    "read .bash_history": "read('{home}/.bash_history')",
    "read .config/gh/hosts.yml": "read('{home}/.config/gh/hosts.yml')",
    "read .gnupg/private-keys-v1.d/key": "read('{home}/.gnupg/private-keys-v1.d/key')",
    "read .mozilla/cookies.sqlite": "read('{home}/.mozilla/cookies.sqlite')",
    "read git's stored passwords": "content('{home}/.config/git/credentials')",
    "change the user's git settings": "append('{home}/.config/git/config')",
    "change a mode in a pending project": "os.chmod('{pending}/key', 0o644)",
    "change times in a pending project": "os.utime('{pending}/key')",
    "truncate in a pending project": "os.truncate('{pending}/key', os.stat('{pending}/key').st_size)",
    "make a link in a pending project": "os.symlink('x', '{pending}/l'); os.unlink('{pending}/l')",
    "make a FIFO in a pending project": "os.mkfifo('{pending}/f'); os.unlink('{pending}/f')",
    "hold a place in a pending project": "os.close(os.open('{pending}', os.O_PATH))",
    "read an attribute in a pending project": "os.listxattr('{pending}/key')",
    "watch a pending project": "watch('{pending}')",
    "watch a folder of the denied project": "watch('{root}/denied/inner')",
    "find a handle of a pending project": "reached(libc.name_to_handle_at(-100, b'{pending}', (ctypes.c_uint * 34)(128), ctypes.byref(ctypes.c_int()), 0), errno.EOPNOTSUPP)",
    "link a file from a read-only root": "os.link('{read_only}/file', '{root}/second'); os.unlink('{root}/second')",
    "link a file of the denied project": "os.link('{root}/denied/key', '{root}/second'); os.unlink('{root}/second')",
    "exchange the denied project": "exchange('{root}/denied', '{root}/plain')",
    "exchange files of a read-only root": "exchange('{read_only}/file', '{read_only}/other')",
    "make a folder in a read-only root": "os.mkdir('{read_only}/n'); os.rmdir('{read_only}/n')",
    "map a file of a read-only root for writing": "os.close(os.open('{read_only}/file', os.O_RDWR))",
    "make a temporary file in a read-only root": "os.close(os.open('{read_only}', os.O_TMPFILE | os.O_RDWR))",
    "list the kernel's settings": "os.listdir('/sys/kernel')",
    "list other devices": "os.stat('/dev/' + min(set(os.listdir('/dev')) - {*'null zero full random urandom tty fd stdin stdout stderr ptmx pts mqueue shm'.split()}, default='none'))",
    "list the processes of others": "os.stat('/proc/%d' % {victim})",
}  # fmt: skip
_VIEW_AS_ROOT = {
    "read password hashes": "content('/etc/shadow')",
    "write a system file": "append('/etc/hostname')",
    "write a program of the system": "append('/usr/bin/env')",
    "open a disk": "os.close(os.open('/dev/' + next(n for n in os.listdir('/sys/block')), os.O_RDONLY))",
    "open the kernel's log": "os.close(os.open('/dev/kmsg', os.O_RDONLY))",
    "set what runs at a crash": "append('/proc/sys/kernel/core_pattern')",
    "set the kernel's limits": "append('/proc/sys/vm/overcommit_memory')",
    "set the number of open files": "append('/proc/sys/fs/file-max')",
    "make a control group": "os.mkdir('/sys/fs/cgroup/rootsd-attack'); os.rmdir('/sys/fs/cgroup/rootsd-attack')",
    "make a device in a root": "os.mknod('{root}/device', 0o020600, os.makedev(1, 5)); os.unlink('{root}/device')",
    "read a host key": "content(next(iter(__import__('glob').glob('/etc/ssh/ssh_host_*_key')), '/etc/shadow'))",
    "read group passwords": "content('/etc/gshadow')",
    "write the table of users": "append('/etc/passwd')",
    "write a library": "append(os.path.realpath('/usr/lib/os-release'))",
    "change the scheduler of a processor": "append('/sys/devices/system/cpu/cpu0/uevent')",
    "set the host name by proc": "append('/proc/sys/kernel/hostname')",
    "read a file of the checkout beside its included git directory": "read('{checkout}/key')",
    "create a file beside an included git directory": "make('{checkout}/new')",
    "move an included git directory": "there_and_back('{checkout}/.git', '{checkout}/moved')",
    "read the git directory that a forged worktree claims": "read('{claimed}/.git/HEAD')",
    "add a branch to the git directory that a forged worktree claims": "make('{claimed}/.git/refs/heads/new')",
}  # fmt: skip
_PROTECTION = {
    "append to the repository's settings": "append_file('{root}/.git/config')",
    "truncate the repository's settings": "f = os.open('{root}/.git/config', os.O_RDWR | os.O_NOFOLLOW); os.ftruncate(f, os.fstat(f).st_size); os.close(f)",
    "replace the repository's settings": "open('{root}/.git/n', 'wb').write(read('{root}/.git/config')); os.rename('{root}/.git/n', '{root}/.git/config')",
    "move the repository's settings": "there_and_back('{root}/.git/config', '{root}/.git/moved')",
    "link the repository's settings": "os.link('{root}/.git/config', '{root}/.git/second'); os.unlink('{root}/.git/second')",
    "add a hook": "make('{root}/.git/hooks/pre-commit')",
    "change a hook": "append('{root}/.git/hooks/post-merge')",
    "make a hook executable": "os.chmod('{root}/.git/hooks/post-merge', 0o755)",
    "move the hooks": "there_and_back('{root}/.git/hooks', '{root}/.git/moved')",
    "move .git": "there_and_back('{root}/.git', '{root}/moved')",
    "write .envrc": "append('{root}/.envrc')",
    "move .envrc": "there_and_back('{root}/.envrc', '{root}/moved')",
    "write .mcp.json": "append('{root}/.mcp.json')",
    "write an editor's settings": "append('{root}/.vscode/settings.json')",
    "add an editor's task": "make('{root}/.vscode/tasks.json')",
    "move an editor's settings": "there_and_back('{root}/.vscode', '{root}/moved')",
    "write an agent's settings": "append('{root}/.claude/settings.json')",
    "move the folder of an agent's settings": "there_and_back('{root}/.claude', '{root}/moved')",
    "write settings through proc": "append_file('/proc/self/root{root}/.git/config')",
    "write settings through an open folder": "f = os.open('{root}/.git', os.O_RDONLY); os.close(os.open('config', os.O_RDWR | os.O_NOFOLLOW, dir_fd=f)); os.close(f)",
    "write settings through an O_PATH descriptor": "f = os.open('{root}/.git/config', os.O_PATH | os.O_NOFOLLOW); append('/proc/self/fd/%d' % f); os.close(f)",
    "write settings through a link": "os.symlink('{root}/.git', '{root}/l')\ntry: append_file('{root}/l/config')\nfinally: os.unlink('{root}/l')",
    "change the times of the settings": "os.utime('{root}/.git/config', follow_symlinks=False)",
    "write a submodule's settings": "append_file('{root}/.git/modules/sub/config')",
    "move a submodule's directory": "there_and_back('{root}/.git/modules/sub', '{root}/.git/modules/other')",
    "exchange the repository's settings": "exchange('{root}/.git/config', '{root}/.git/HEAD')",
    "set an attribute of the settings": "os.setxattr('{root}/.git/config', 'user.a', b'1', 0, follow_symlinks=False); os.removexattr('{root}/.git/config', 'user.a')",
    "add a hook where the settings say": "make('{root}/team-hooks/pre-commit')",
    "move the hooks that the settings name": "there_and_back('{root}/team-hooks', '{root}/moved')",
    "write included settings": "append('{root}/shared.gitconfig')",
    "write the target of a link": "append('{root}/rules')",
    "move a link": "there_and_back('{root}/.continue', '{root}/moved')",
    "make a temporary file among the hooks": "os.close(os.open('{root}/.git/hooks', os.O_TMPFILE | os.O_RDWR))",
    "move a folder above a protected file": "there_and_back('{root}/.github', '{root}/moved')",
    "append to the settings of an included git directory": "append_file('{checkout}/.git/config')",
    "add a hook to an included git directory": "make('{checkout}/.git/hooks/pre-commit')",
    "move the hooks of an included git directory": "there_and_back('{checkout}/.git/hooks', '{checkout}/.git/moved')",
    "lead a worktree to another git directory": "append('{tree}/.git')",
    "link an included git directory to another worktree": "append('{checkout}/.git/worktrees/tree/gitdir')",
}  # fmt: skip
_LANDLOCK = {
    "read by the working directory": "read('file')",
    "list the working directory": "os.listdir('.')",
    "list above the working directory": "os.listdir('..')",
    "create in the working directory": "make('new')",
    "make a folder in the working directory": "os.mkdir('newer'); os.rmdir('newer')",
    "link in the working directory": "os.symlink('x', 'l'); os.unlink('l')",
    "rename in the working directory": "there_and_back('file', 'moved')",
    "hard link in the working directory": "os.link('file', 'second'); os.unlink('second')",
    "bind a socket in the working directory": "s = socket.socket(socket.AF_UNIX); s.bind('sock'); s.close(); os.unlink('sock')",
    "make a FIFO in the working directory": "os.mkfifo('fifo'); os.unlink('fifo')",
    "run by the working directory": "subprocess.run(['./program'], check=True)",
    "truncate by the working directory": "os.truncate('file', os.stat('file').st_size)",
    "read by an open folder": "os.close(os.open('file', os.O_RDONLY, dir_fd=FOLDER))",
    "write by an open folder": "os.close(os.open('file', os.O_WRONLY, dir_fd=FOLDER))",
    "create by an open folder": "os.close(os.open('new', os.O_CREAT | os.O_EXCL, dir_fd=FOLDER)); os.unlink('new', dir_fd=FOLDER)",
    "open an open folder again": "os.close(os.open('.', os.O_RDONLY, dir_fd=FOLDER))",
    "open a folder in an open folder": "os.close(os.open('inner', os.O_RDONLY, dir_fd=FOLDER))",
    "rename by an open folder": "os.rename('file', 'm', src_dir_fd=FOLDER, dst_dir_fd=FOLDER); os.rename('m', 'file', src_dir_fd=FOLDER, dst_dir_fd=FOLDER)",
    "read by an O_PATH descriptor": "os.close(os.open('file', os.O_RDONLY, dir_fd=PLACE))",
    "list by an O_PATH descriptor": "os.close(os.open('.', os.O_RDONLY | os.O_DIRECTORY, dir_fd=PLACE))",
    "list through proc": "os.listdir('/proc/self/fd/%d' % FOLDER)",
    "read through proc": "read('/proc/self/fd/%d/file' % FOLDER)",
    "open an open file again": "append('/proc/self/fd/%d' % FILE)",
    "read through proc's working directory": "read('/proc/self/cwd/file')",
    "enter a folder and read": "in_child(lambda: (os.fchdir(FOLDER), read('file')))",
    "connect to an abstract socket outside": "connect(socket.AF_UNIX, '\\0{abstract}')",
    "change the root folder to the folder that is gone": "nested(lambda: (os.chroot('.'), read('/file')))",
    "run through proc": "subprocess.run(['/proc/self/fd/%d/program' % FOLDER], pass_fds=[FOLDER], check=True)",
    "write through proc's folder": "append('/proc/self/fd/%d/file' % FOLDER)",
    "make a temporary file in the working directory": "os.close(os.open('.', os.O_TMPFILE | os.O_RDWR))",
    "exchange in the working directory": "exchange('file', 'program')",
    "remove a folder in the working directory": "there_and_back('inner', 'moved')",
    "read by a path with an inner folder": "read('inner/../file')",
    "list by a thread's working directory": "os.listdir('/proc/thread-self/cwd')",
    "read through an open file's own descriptor": "read('/proc/self/fd/%d' % FILE)",
    "read a folder from a program outside": "f = take('{root}/give-folder')\ntry: os.close(os.open('key', os.O_RDONLY, dir_fd=f))\nfinally: os.close(f)",
    "list a folder from a program outside": "f = take('{root}/give-folder')\ntry: os.listdir('/proc/self/fd/%d' % f)\nfinally: os.close(f)",
    "work in a folder from a program outside": "in_child(lambda: (os.fchdir(take('{root}/give-folder')), read('key')))",
    "send to an abstract datagram socket": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect('\\0{abstract}-datagrams')",
}  # fmt: skip
_SECCOMP = {
    "read a key": "call(250, 0, -3, 0)",
    "add a key": "call(248, b'user', b'rootsd-test', b'x', 1, -2)",
    "request a key": "call(249, b'user', b'none', 0, 0)",
    "set up io_uring": "call(425, 0, 0)",
    "enter io_uring": "call(426, -1, 0, 0, 0, 0, 0)",
    "register with io_uring": "call(427, -1, 0, 0, 0)",
    "move pages": "call(279, 0, 0, 0, 0, 0, 0)",
    "inject a key into a terminal": "terminal_call(0x5412)",
    "inject a key by a long number": "terminal_call(0xffff000000005412)",
    "copy a console's selection": "terminal_call(0x541c)",
    "handle page faults": "call(323, 1)",
    "open a file by its handle": "call(304, -100, 0, 0)",
    "make a socket to the host of a virtual machine": "socket.socket(40, socket.SOCK_STREAM).close()",
    "count events of the processor": "call(298, 0, 0, -1, -1, 0)",
    "load a program into the kernel": "call(321, 99, 0, 0)",
    "set a quota": "call(179, 0x80000000, 0, 0, 0)",
}  # fmt: skip
_MOUNT_CALLS = {
    "mount in a nested namespace": "nested(lambda: mount('t', '/tmp', 'tmpfs', 0))",
    "bind a root to keep it": "nested(lambda: mount('{root}', '/tmp', None, 0x5000))",
    "make mounts private, to keep them": "nested(lambda: mount(None, '/', None, 0x44000))",
    "change a mount in a nested namespace": "nested(lambda: mount(None, '/tmp', None, 0x1021 | 6))",
    "keep a copy of a root by open_tree": "nested(lambda: os.listdir('/proc/self/fd/%d' % checked(libc.syscall(428, -100, b'{root}', 0x8001))))",
    "attach a copy of a root by move_mount": "nested(lambda: checked(libc.syscall(429, checked(libc.syscall(428, -100, b'{root}', 0x8001)), b'', -100, b'/tmp', 4)))",
    "cut off all mounts by mount_setattr": "nested(lambda: cut_off('/', 0x8000))",
    "cut off a root by mount_setattr": "nested(lambda: cut_off('{root}'))",
    "prepare a file system": "nested(lambda: os.close(checked(libc.syscall(430, b'tmpfs', 0))))",
    "configure and mount a file system": "nested(lambda: os.listdir('/proc/self/fd/%d' % new_mount('tmpfs')))",
    "configure a file system in use by fspick": "nested(lambda: (mount('t', '/tmp', 'tmpfs', 0), checked(libc.syscall(433, -100, b'/tmp', 0))))",
}  # fmt: skip
_CAPABILITIES = {
    "set the host name": "in_child(lambda: socket.sethostname('attack'))",
    "mount a file system": "in_child(lambda: checked(libc.mount(b't', b'/tmp', b'tmpfs', 0, None)))",
    "change the root folder": "in_child(lambda: os.chroot('/tmp'))",
    "make a namespace": "in_child(lambda: checked(libc.unshare(0x4000000)))",
    "set the domain name": "in_child(lambda: checked(libc.setdomainname(b'attack', 6)))",
    "make a network namespace": "in_child(lambda: checked(libc.unshare(0x40000000)))",
    "make an IPC namespace": "in_child(lambda: checked(libc.unshare(0x8000000)))",
    "make a mount namespace": "in_child(lambda: checked(libc.unshare(0x20000)))",
}  # fmt: skip
_NETWORK = {
    "connect to a service on localhost": "connect(socket.AF_INET, ('127.0.0.1', {port}))",
    "connect to a service on localhost by IPv6": "connect(socket.AF_INET6, ('::1', {port6}))",
    "list the machine's connections": "names('/proc/net/tcp', ':%04X ' % {port})",
    "list the sockets of programs outside": "names('/proc/net/unix', '{pending}/socket')",
}

_LOCKS = {
    "unmount the mask of a denied project": "nested(lambda: unmount('{root}/denied'))",
    "unmount the protection of the settings": "nested(lambda: unmount('{root}/.git/config'))",
    "unmount the protection of the hooks": "nested(lambda: unmount('{root}/.git/hooks'))",
    "unmount a root": "nested(lambda: unmount('{root}'))",
    "make a read-only root writable": "nested(lambda: remount_writable('{read_only}'))",
    "make the hooks writable": "nested(lambda: remount_writable('{root}/.git/hooks'))",
    "look below the mask by a bind mount": "nested(lambda: (mount('{root}', '/tmp', None, 0x1000), read('/tmp/denied/key')))",
    "look below the mask by open_tree": "nested(lambda: read('/proc/self/fd/%d/denied/key' % checked(libc.syscall(428, -100, b'{root}', 1))))",
    "look below the mask by overlayfs": "nested(lambda: (mount('o', '/tmp', 'overlay', 0, 'lowerdir={root}:{read_only}'), read('/tmp/denied/key')))",
    "change protected settings below a bind mount": "nested(lambda: (mount('{root}', '/tmp', None, 0x1000), append_file('/tmp/.git/config')))",
    "move the mask away": "nested(lambda: (None if is_mounted('{root}/denied') else mount('{root}/denied', '{root}/denied', None, 0x1000), mount(None, '/', None, 0x44000), mount('{root}/denied', '/tmp', None, 0x2000)))",
    "unmount /usr": "nested(lambda: unmount('/usr'))",
    "mount all processes": "nested(lambda: in_child(lambda: mount('p', '/proc', 'proc', 0)), 0x20000000)",
    "mount the system's devices": "nested(lambda: mount('s', '/tmp', 'sysfs', 0), 0x40000000)",
}  # fmt: skip
PROTECTED_NAMES = (
    ".hg/hgrc", ".husky", ".idea", ".devcontainer", ".cursor", ".codex", ".gemini",
    ".github/copilot-instructions.md", ".mise.toml", ".pre-commit-config.yaml", ".gitmodules",
    "lefthook.yml", ".git/info/attributes", ".git/objects/info/alternates", ".opencode",
    ".dir-locals.el",
)  # fmt: skip
_PROTECTION |= {f"change {name}": f"os.utime('{{root}}/{name}')" for name in PROTECTED_NAMES} | {
    f"move {name}": f"there_and_back('{{root}}/{name}', '{{root}}/{name}.moved')"
    for name in PROTECTED_NAMES
}

OPEN = {
    "read and write a file that is open at a revoke": "os.pread(FILE, 1, 0)",
    "ask about names by an open folder": "os.stat('file', dir_fd=FOLDER)",
    "change modes by an open folder": "os.chmod('file', 0o644, dir_fd=FOLDER)",
    "change times by an open folder": "os.utime('file', dir_fd=FOLDER)",
    "change extended attributes by a working directory": "os.setxattr('file', 'user.a', b'1'); os.removexattr('file', 'user.a')",
    "watch a working directory with inotify": "watch('.')",
    "connect to a socket by a working directory": "connect(socket.AF_UNIX, 'socket')",
    "connect to a socket in a root": "take('{root}/give-folder')",
    "create a protected file that does not exist": "make('{root}/.exrc')",
    "write a protected file by a second hard link": "append('{root}/second-name')",
    "write the settings of a nested repository": "append('{root}/nested/.git/config')",
    "read the git directory of a denied submodule": "read('{root}/.git/modules/denied/HEAD')",
    "make a user namespace, which reaches more of the kernel": "nested(lambda: None)",
}  # fmt: skip
"""The attacks that succeed, and so are published in `docs/ATTACKS.md`."""

ATTACKS = (
    *(Attack(name, Layer.VIEW, line) for name, line in _VIEW.items()),
    *(Attack(name, Layer.VIEW, line, only_root=True) for name, line in _VIEW_AS_ROOT.items()),
    *(Attack(name, Layer.PROTECTION, line) for name, line in _PROTECTION.items()),
    *(Attack(name, Layer.LANDLOCK, line) for name, line in _LANDLOCK.items()),
    *(Attack(name, Layer.SECCOMP, line) for name, line in _SECCOMP.items()),
    *(Attack(name, Layer.MOUNT_CALLS, line) for name, line in _MOUNT_CALLS.items()),
    *(
        Attack(name, Layer.CAPABILITIES, line, only_root=True)
        for name, line in _CAPABILITIES.items()
    ),
    *(Attack(name, Layer.NETWORK, line) for name, line in _NETWORK.items()),
    *(Attack(name, Layer.LOCKS, line) for name, line in _LOCKS.items()),
)


def attack_table() -> str:
    """Return the tables for `docs/ATTACKS.md`."""
    rows = [
        f"| {layer.value} | {'; '.join(each.name for each in ATTACKS if each.layer is layer)} |"
        for layer in Layer
    ]
    refused = "\n".join(["| refused by | attack |", "|---|---|", *rows])
    link = "[What stays open](CONFINEMENT.md#what-stays-open)"
    return f"{refused}\n\nThese succeed. {link} explains each:\n\n" + "".join(
        f"- {name}\n" for name in OPEN
    )
