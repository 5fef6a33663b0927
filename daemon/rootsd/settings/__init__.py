"""Edit `config.toml` and the settings files of other programs, and lose nothing.

A settings file belongs to a person, and most to a client, too. Each has an order, comments, and a
layout that somebody chose. So nothing here parses a file and rewrites it. An edit is the
replacement of a few characters at known positions, and everything else stays as it is, byte for
byte.

* `json_spans`, `toml_spans`, and `yaml_spans` find the positions of values in a text, and insert,
  replace, or remove some of them. Each edit parses its own result. If any value differs from the
  expected one, the edit fails with NotEditable, so a bug here cannot damage a file.
* `formats` gives the three one interface.
* `settings_file` reads a file, and exchanges it with its new version in one step. If the client
  wrote the file meanwhile, the edit is made again on the client's text.
* `client_lock` takes the lock that a client holds while it writes its own file.

What these modules do not understand, such as an object with the same key twice, they refuse.
"""
