"""An ACP agent that does what each prompt says. Run it as a program; it uses the public SDK.

A prompt is JSON: `{"read": PATH}`, `{"write": PATH}`, and `{"terminal": FOLDER}` ask the client,
`{"own": [WORDS, FOLDER]}` runs a program without it, and `{"permission": PATH}` asks a person.
The answer is a message with the result, or with the code and the text of an error.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import acp
import anyio
from acp import schema


class ObedientAgent:
    """The agent. It keeps its sessions in the order in which they began."""

    def __init__(self) -> None:
        self._sessions: list[schema.SessionInfo] = []
        self._client: acp.Client
        self._initialized: dict[str, Any] = {}

    def on_connect(self, conn: acp.Client) -> None:
        """Keep the connection."""
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_: Any,  # noqa: ANN401
    ) -> acp.InitializeResponse:
        """Offer sessions with more folders, and a list of them."""
        if client_capabilities is not None:
            self._initialized = client_capabilities.model_dump(by_alias=True)
        session = schema.SessionCapabilities(
            resume=schema.SessionResumeCapabilities(),
            list=schema.SessionListCapabilities(),
            additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
        )
        return acp.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True, session_capabilities=session
            ),
        )

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_: Any,  # noqa: ANN401
    ) -> acp.NewSessionResponse:
        """Begin a session, and say what it was given."""
        name = f"s{len(self._sessions)}"
        self._sessions.append(schema.SessionInfo(cwd=cwd, session_id=name))
        told = {
            "folders": [cwd, *(additional_directories or [])],
            "servers": [server.name for server in mcp_servers or []],
            "capabilities": self._initialized,
        }
        return acp.NewSessionResponse(session_id=name, field_meta=told)

    async def resume_session(
        self,
        cwd: str,
        session_id: str,
        additional_directories: list[str] | None = None,
        **_: Any,  # noqa: ANN401
    ) -> schema.ResumeSessionResponse:
        """Go on with a session, and say what it was given."""
        told = {"folders": [cwd, *(additional_directories or [])]}
        return schema.ResumeSessionResponse(field_meta=told)

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        **more: Any,  # noqa: ANN401
    ) -> acp.LoadSessionResponse:
        """Go on with a session. There is nothing to repeat to the client."""
        resumed = await self.resume_session(cwd, session_id, **more)
        return acp.LoadSessionResponse(field_meta=resumed.field_meta)

    async def list_sessions(
        self,
        cwd: str | None = None,
        cursor: str | None = None,
        **_: Any,  # noqa: ANN401
    ) -> schema.ListSessionsResponse:
        """List all sessions, and one in a folder that the client never named."""
        other = schema.SessionInfo(cwd="/etc", session_id="elsewhere")
        return schema.ListSessionsResponse(sessions=[*self._sessions, other])

    async def prompt(
        self,
        session_id: str,
        prompt: list[Any],
        **_: Any,  # noqa: ANN401
    ) -> acp.PromptResponse:
        """Do what the prompt says."""
        ((verb, value),) = json.loads(prompt[0].text).items()
        try:
            result = await self._do(session_id, verb, value)
        except acp.RequestError as error:
            result = {"code": error.code, "message": str(error)}
        text = acp.update_agent_message_text(json.dumps(result))
        await self._client.session_update(session_id, text)
        return acp.PromptResponse(stop_reason="end_turn")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return what came."""
        return {"method": method, **params}

    async def _do(self, session: str, verb: str, value: Any) -> Any:  # noqa: ANN401
        client = self._client
        match verb:
            case "read":
                return (await client.read_text_file(session_id=session, path=value)).content
            case "write":
                await client.write_text_file(session_id=session, path=value, content="by client")
                return "written"
            case "terminal":
                made = await client.create_terminal(session_id=session, command="ls", cwd=value)
                return made.terminal_id
            case "permission":
                call = schema.ToolCallUpdate(tool_call_id="c", title=value)
                yes = schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")
                asked = await client.request_permission(session, call, [yes])
                return asked.outcome.outcome
            case _:
                words, folder = value
                done = await anyio.run_process(
                    words, cwd=folder, stderr=subprocess.STDOUT, check=False
                )
                return done.stdout.decode()


if __name__ == "__main__":
    asyncio.run(acp.run_agent(ObedientAgent(), use_unstable_protocol=True))
