"""Lines with secrets are left out of settings, and nothing else is."""

from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.wall.view.secret_lines import has_literal_secret, without_secrets

# None of them is a real token.
SECRET_LINES = """
export OPENAI_API_KEY=abc
export GH_TOKEN="a b c"
DB_PASS='x'
set -gx GITHUB_TOKEN abc
setenv API_TOKEN abc
//r.example/:_authToken=abc
_auth = YWJjOmRlZg==
//r.example/:_password="YWJj"
npmAuthToken: "abc"
"npmAuthIdent": "user:abc"
signing.password=abc
mavenPwd=abc
        smtpPass = abc
        token = abc
        extraHeader = Authorization: Basic YWJjOmRlZg==
index-url = https://me:abc@pypi.example/simple
  - https://conda.example/t/ab-0123456789/channel
export X=ghp_01234567890123456789
export X=sk-0123456789abcdef0
export X=AKIA0123456789ABCDEF
export SESSION=0123456789abcdef0123456789abcdef
export SESSION="aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"
alias x='curl -u me:abc https://h.example'
alias y='sshpass -p abc ssh h'
SETUVAR --export GITHUB_TOKEN:abc
export TOKEN=$(echo YWJj | base64 -d)
export TOKEN=$'abc'
Sys.setenv(API_KEY = "abc")
# export OLD_TOKEN=abc, don't use
export A_TOKEN=$X B_TOKEN=abc
export A_TOKEN=$(pass show a) B_TOKEN=abc
export A_TOKEN_FILE=~/a B_TOKEN=abc
export STRIPE_KEY_LIVE=abc
export HOOK=https://hooks.slack.com/services/T0/B0/abc
export GITHUB_PAT=abc
export MY_JWT=abc MY_CREDS=abc
export SESSION_COOKIE=abc
export X=sk_live_0123456789abcdef # comment
alias x="tool aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF x"
alias x='mysql -uroot -pabc'
alias x='docker login -u me -p abc'
alias x='wget --http-password abc h'
alias x='echo abc | docker login --password-stdin'
gh auth login --with-token <<< abc
read -r MY_TOKEN <<< abc
read MY_TOKEN < <(echo abc)
printf -v MY_TOKEN %s abc
function x; set -lx GH_TOKEN abc; end
set-environment -g MY_TOKEN abc
export TOKEN=`echo abc`
export TOKEN=$(cat <<< abc)
MY_TOKEN ?= abc
ENV["TOKEN"] ||= "abc"
vim.fn.setenv("OPENAI_API_KEY", "abc")
  - {name: MY_TOKEN, value: abc}
user = "me:abc"
http_proxy = me:abc@proxy.example
\\setenv PGPASSWORD abc
""".strip().splitlines()

HARMLESS_LINES = """
export PATH="$HOME/bin:$PATH"
export SSH_AUTH_SOCK=$XDG_RUNTIME_DIR/agent
export PASSWORD_STORE_DIR=~/.password-store
export TOKEN=$(pass show token)
export TOKEN=$OTHER
//r.example/:_authToken=${NPM_TOKEN}
always-auth=true
registry=https://r.example/
        signingkey = ABCDEF0123456789
        name = A Author
        author = me
[credential "https://github.com"]
        helper = store
        insteadOf = git@github.com:
bindkey '^[[A' history-search
bind-key x kill-pane
set -g status-key vi
compinit && source <(kubectl completion zsh)
export GPG_TTY=$(tty)
channel_priority: strict
export TOKEN=
export LESS="-R --use-color"
export DOCKER_CONFIG=$HOME/.docker
alias x='gh auth token | pbcopy'
if [ -n "$TOKEN" ]; then x; fi
for token in a b; do echo "$token"; done
while read -r name token; do x; done
vim.opt.iskeyword:append("-")
highlight = { "password", "token" }
set -g status-keys vi
pw() { pass show "$1"; }
""".strip().splitlines()


@pytest.mark.parametrize("line", SECRET_LINES)
def test_a_line_with_a_secret_is_left_out(line: str) -> None:
    text = f"first = 1\n{line}\nlast = 2\n".encode()
    found = without_secrets(text)
    assert found is not None
    assert found.replace(b":\n", b"") == b"first = 1\nlast = 2\n"


@pytest.mark.parametrize("line", HARMLESS_LINES)
def test_other_lines_stay(line: str) -> None:
    text = f"first = 1\n{line}\nlast = 2\n".encode()
    assert without_secrets(text) == text


@given(st.lists(st.sampled_from([*SECRET_LINES, *HARMLESS_LINES])))
def test_no_secret_stays_beside_other_lines(lines: list[str]) -> None:
    found = without_secrets("\n".join(lines).encode())
    kept = [line for line in lines if line in HARMLESS_LINES]
    assert found is None or [each for each in found.decode().splitlines() if each != ":"] == kept


@pytest.mark.parametrize("command", ["export TOKEN=abc", "alias x='curl -u me:abc h'"])
def test_a_shell_can_still_read_a_block_without_its_only_command(command: str) -> None:
    found = without_secrets(f"if true; then\n  {command}\nfi\necho end\n".encode())
    done = subprocess.run(["sh"], input=found, capture_output=True, check=True)
    assert done.stdout == b"end\n"


@pytest.mark.parametrize(
    "text",
    [
        "export TOKEN='abc\ndef'\n",
        "export TOKEN=abc\\\ndef\n",
        "token: |\n  abc\n",
        "token:\n  abc\n",
        "tokens=(\n abc\n)\n",
        'token = """\nabc\n"""\n',
        "token =\n  abc\n",
        "<password><![CDATA[abc]]></password>\n",
        "<password>abc<!-- x --></password>\n",
        '<property name="password" value="abc"/>\n',
        '<entry name="x.token">abc</entry>\n',
        "T\0O\0K\0E\0N\0=\0a\0",
        "cat > x <<END_TOKEN=abc\ndef\n",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n",
        'key = "-----BEGIN PRIVATE KEY-----\nabc"\n',
    ],
)
def test_a_secret_that_may_go_on_in_the_next_line_leaves_nothing(text: str) -> None:
    assert without_secrets(f"first = 1\n{text}last = 2\n".encode()) is None


def test_the_section_of_a_heading_with_a_secret_goes() -> None:
    text = b'[a]\nb = c\n[url "https://u:abc@h/"]\ninsteadOf = x\n[user]\nname = n\n'
    assert without_secrets(text) == b"[a]\nb = c\n[user]\nname = n\n"


def test_an_element_of_xml_loses_its_value() -> None:
    text = b'<server>\n<id>a</id><password x="y">\nabc</password><apiKey/>\n</server>\n'
    shown = b'<server>\n<id>a</id><password x="y"></password><apiKey/>\n</server>\n'
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    ("line", "has_secret"),
    [
        ("API_KEY=abcdef123456", True),
        ("curl -H 'Authorization: Bearer abcdefgh1'", True),
        ("token = tokenizer.next()", False),
        ("password=$1", False),
        ("key=value", False),
        ("token: str = ''", False),
        ("Usage: x --token TOKEN --password PASSWORD", False),
        ("echo y | x login", False),
        ("sha=0123456789abcdef0123456789abcdef", False),
    ],
)
def test_a_program_has_a_secret_only_if_it_is_a_literal(line: str, has_secret: bool) -> None:
    assert has_literal_secret(f"#!/bin/sh\n{line}\n".encode()) is has_secret


@pytest.mark.parametrize("part", ["a", "set ", "token <", "://a:", "login -p"])
def test_a_long_line_does_not_hold_up_the_start(part: str) -> None:
    """A program can write such a line into a script that the view shows. It took minutes."""
    line = f"x = {part * (64_000 // len(part))} token\n".encode()
    started = time.process_time()
    without_secrets(line)
    has_literal_secret(line)
    assert time.process_time() - started < 5
