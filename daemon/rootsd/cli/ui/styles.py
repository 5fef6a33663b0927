"""The layout and the colors of the screen, in the 16 colors of the terminal."""

from __future__ import annotations

from rich.style import Style

PLAIN = Style()
REVERSE = Style(reverse=True)

CSS = """
Screen { layout: vertical; background: ansi_default; color: ansi_default; }
#lists { height: 3fr; }
RowList, TextView {
    width: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
    background: ansi_default; color: ansi_default;
    scrollbar-color: ansi_bright_black; scrollbar-color-hover: ansi_green;
    scrollbar-color-active: ansi_green; scrollbar-background: ansi_default;
    scrollbar-background-hover: ansi_default; scrollbar-background-active: ansi_default;
}
RowList, #details { border: round ansi_bright_black; border-title-color: ansi_default; }
RowList:focus, #details:focus { border: round ansi_green; border-title-style: bold; }
#details { height: 2fr; }
.narrow #lists RowList { display: none; }
.narrow #lists RowList.active { display: block; }
.narrow #lists { height: 5fr; }
.narrow #details { height: 2fr; }
.narrow RowList, .narrow RowList:focus { border: none; }
.narrow #details { border: none; border-top: round ansi_bright_black; }
.narrow #details:focus { border: none; border-top: round ansi_green; }
#search { display: none; height: 1; }
#search.shown { display: block; }
Bar { height: 1; background: ansi_default; color: ansi_default; }
ModalScreen { align: center middle; background: ansi_default; }
.dialog {
    width: 90%; max-width: 110; height: auto; max-height: 95%; border: round ansi_green;
    padding: 0 1; background: ansi_default;
}
.dialog.large { height: 80%; }
.dialog TextView { height: 5; }
.large TextView { height: 1fr; min-height: 3; }
.dialog .title { text-style: bold; }
.field { height: 1; }
.field .label { width: 13; }
.field Input { width: 1fr; }
Checkbox { background: ansi_default; border: none; height: 1; padding: 0; }
#fields { height: auto; }
#effect { height: auto; text-style: bold; }
#effect.wrong { color: ansi_red; }
#dialog-keys { margin-top: 1; }
"""
