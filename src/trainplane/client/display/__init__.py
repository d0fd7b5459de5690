"""How the SDK's types look to people: in a notebook as HTML, elsewhere as text; and what is shown during a wait.

Everything but `live` is a pure function of a type and of the time. `tables` has the rows that both forms share, `html`
pieces come from `elements` and are put together in `cards`, plain text is laid out in `text`.
"""
