"""README's Python runs as it stands, block after block, in one kernel."""

from __future__ import annotations

import re
from pathlib import Path

from kernels.kernel import start_kernel

README = Path(__file__).parents[2] / "README.md"

SETUP = """
import os
os.environ["YIEMAGENT_BACKEND"] = "demo"
from yiemagent_nb import Demo
another_backend = Demo(delay=0)
"""

SETTLE = """
if "agent" in globals():
    await agent.wait_idle()
"""


async def test_every_python_block_of_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    async with start_kernel() as kernel:
        await kernel.must(f"{SETUP}\nos.chdir({str(tmp_path)!r})")
        outputs: dict[str, str] = {}
        for block in blocks:
            outputs[block] = (await kernel.must(block)).text
            await kernel.must(SETTLE)
    script = next(text for block, text in outputs.items() if "my_function" in block)
    assert "1 messages, 0 tools" in script
    forecast = next(text for block, text in outputs.items() if "forecaster" in block)
    assert "21.5" in forecast
    assert any("AgentWidget" in text for text in outputs.values())
    stream = next(text for block, text in outputs.items() if "agent.stream" in block)
    assert "ToolExecutionEnd" in stream
    assert "17 + 25" in (tmp_path / "chat.md").read_text(encoding="utf-8")
