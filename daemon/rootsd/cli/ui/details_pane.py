"""The pane with the details of the selected row, which are read from the daemon."""

from __future__ import annotations

from collections.abc import Sequence

from rootsd.cli.answers.decision_flow import Send
from rootsd.cli.text.layout import Paragraph
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui import details
from rootsd.cli.ui.board import GroupRow, ProjectRow, Row, SessionRow
from rootsd.cli.ui.ordered_input import Job
from rootsd.cli.ui.orders import Target
from rootsd.cli.ui.widgets import RowList, TextView
from rootsd.core.errors import RootsdError
from rootsd.wire.follow import SessionRootsQuery
from rootsd.wire.projects import ShowQuery


class DetailsPane(TextView):
    """The details of what is selected. `ask` sends a query to the daemon."""

    def __init__(self, ask: Send) -> None:
        super().__init__(id_="details")
        self.border_title = "Details"
        self._ask = ask
        self._shown: Sequence[Paragraph] = ()
        self._problem = ""
        self._selected: Row | Sequence[Target] | None = None
        self._is_reading = False
        self._read: tuple[ProjectRow, str] | None = None

    def identity_of(self, row: ProjectRow) -> str:
        """Return the identity of the folder that the person saw in the row."""
        if self._read is not None and self._read[0] == row:
            return self._read[1]
        return row.identity

    def show_problem(self, text: str) -> None:
        """Show a problem above the details, or take it away if the text is empty."""
        if text or self._problem:
            self._problem = text
            self._describe(self._shown)

    def show_selected(self, rows: RowList, empty: str) -> None:
        """Show the marked rows, or the one under the cursor, and read its details.

        `empty` says why there is none.
        """
        marked = rows.marked
        selected = marked or rows.current
        if selected is not None and selected == self._selected:
            return
        self._selected = selected
        match selected:
            case None:
                self._describe([Paragraph("", empty)])
            case ProjectRow():
                self._describe(details.about_row(selected, "reading the folder"))
            case SessionRow():
                self._describe(details.about_session(selected, ()))
            case GroupRow():
                self._describe(details.about_projects("group", selected.members))
            case _:
                self._describe(
                    details.about_projects("selected", [target.row for target in marked])
                )
        if isinstance(selected, ProjectRow | SessionRow) and not self._is_reading:
            self._is_reading = True
            begin: Job = self._read_details
            self.run_worker(begin)

    def _describe(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show these details, below a problem that has no room in the status line."""
        self._shown = paragraphs
        problem = [Paragraph("problem", self._problem, Tone.BAD)] if self._problem else []
        self.show([*problem, *paragraphs])

    async def _read_details(self) -> None:
        """Read the details of the selected row. If it changes meanwhile, read again."""
        row = None
        while row is not self._selected and isinstance(self._selected, ProjectRow | SessionRow):
            row = self._selected
            try:
                paragraphs = await self._details_of(row)
            except RootsdError as error:
                paragraphs = [Paragraph("", error.message, Tone.BAD)]
                if isinstance(row, ProjectRow):
                    paragraphs += details.about_row(row, "the folder could not be read")
            if row is self._selected:
                self._describe(paragraphs)
        self._is_reading = False

    async def _details_of(self, row: ProjectRow | SessionRow) -> list[Paragraph]:
        if isinstance(row, SessionRow):
            roots = await self._ask(SessionRootsQuery(row.id))
            return details.about_session(row, roots["items"])
        (item,) = (await self._ask(ShowQuery("/", (row.id,))))["items"]
        self._read = (row, item.get("identity", ""))
        return details.about_project(item)
