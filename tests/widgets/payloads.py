"""Texts that try to run something where they are shown."""

from __future__ import annotations

PAYLOADS = {
    "script": "<script>window.pwned = 1; alert(1)</script>",
    "img onerror": '<img src="x" onerror="window.pwned = 1; alert(1)">',
    "svg onload": '<svg onload="window.pwned = 1"><animate onbegin="window.pwned = 1" attributeName="x" dur="1s">',
    "javascript link": "[click](javascript:window.pwned=1) <a href='java\tscript:window.pwned=1'>click</a>",
    "encoded javascript link": "[click](&#106;avascript:window.pwned=1) [b](JaVaScRiPt&colon;window.pwned=1)",
    "data link": "[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "iframe": '<iframe src="javascript:parent.pwned=1" srcdoc="<script>parent.pwned=1</script>"></iframe>',
    "jupyterlab command": (
        '<a href="#" data-commandlinker-command="notebook:run-all-cells" data-commandlinker-args="{}">click</a>'
        '<button data-commandlinker-command="apputils:reset">click</button>'
    ),
    "style": "<style>body{display:none}</style><p style='position:fixed;inset:0'>over everything</p>",
    "form": (
        '<form action="https://example.org"><input name="key" autofocus onfocus="window.pwned=1">'
        "<button>Go</button></form>"
    ),
    "meta refresh": (
        '<meta http-equiv="refresh" content="0;url=https://example.org">'
        '<link rel="stylesheet" href="//example.org/x.css">'
    ),
    "base": '<base href="https://example.org/"><a href="relative">click</a>',
    "mutation": (
        "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=window.pwned=1&gt;'>"
        "</mglyph></table></mtext></math>"
        '<form><math><mtext></form><form><mglyph><style></math><img src onerror="window.pwned=1">'
    ),
    "noscript": '<noscript><p title="</noscript><img src=x onerror=window.pwned=1>">',
    "markdown link title": "[a](https://example.org \"x' onmouseover=window.pwned=1 '\")",
    "markdown image": '![x" onerror="window.pwned=1](x) ![y](https://e.org/"onerror="window.pwned=1)',
    "reference link": "[a][1]\n\n[1]: javascript:window.pwned=1\n",
    "autolink": "<javascript:window.pwned=1> <vbscript:x>",
    "fenced": '```html" onmouseover="window.pwned=1\n</code></pre><img src=x onerror=window.pwned=1>\n```',
    "clobbering": (
        '<a id="jupyterapp" name="yna" class="yna-primary">x</a><form id="attributes"><input name="nodeName"></form>'
    ),
    "object": '<object data="javascript:window.pwned=1"></object><embed src="javascript:window.pwned=1">',
    "formula": (
        "$\\href{javascript:window.pwned=1}{x}$ $$\\htmlData{commandlinker-command=a}{x}$$ "
        "$<img src=x onerror=window.pwned=1>$"
    ),
}
