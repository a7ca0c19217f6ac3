"""Reading what models answer: from any response, whole or in pieces, to one message.

``extract`` reads a whole response and ``assemble`` one that streams in. Both stand on the same
parts: ``fields`` reads what a mapping holds, ``content`` and ``blocks`` keep what has come,
``tags`` and ``text_calls`` find thoughts and calls in text, ``message_form`` and
``responses_form`` know the shapes, and ``server_errors`` turns a server's error into a typed one.
"""
