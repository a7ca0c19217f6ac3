from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.backends import prices
from yiemagent_nb.backends.prices import PriceTable, known_id
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel, ModelCost, ThinkingLevel, Usage

DATA = Path(prices.__file__).parent / "data"
PRICES: dict[str, Any] = json.loads((DATA / "prices.json").read_text(encoding="utf-8"))
MODELS: dict[str, Any] = json.loads((DATA / "openai_models.json").read_text(encoding="utf-8"))
EFFORTS = ["none", *get_args(ThinkingLevel)[1:]]

GIVEN = ModelCost(input=1.0, output=2.0, cache_read=0.5, cache_write=1.5)

amounts = st.floats(0, 1e6) | st.integers(0, 10**6)
entries = st.fixed_dictionaries(
    {"input": amounts, "output": amounts}, optional={"cache_read": amounts, "cache_write": amounts}
)
tables = st.dictionaries(st.sampled_from("abc") | st.text(min_size=1), entries, max_size=5)
shipped_ids = st.sampled_from(sorted(PRICES["models"]))


def refusal(source: Any) -> str:
    with pytest.raises(InvalidParametersError) as caught:
        PriceTable.of(source)
    return str(caught.value)


def written(folder: Path, content: object) -> Path:
    path = folder / "prices.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


# --- look-up ---------------------------------------------------------------------------------


@given(shipped_ids, st.sampled_from(["", "openai/", "openrouter/openai/"]), st.sampled_from(["", "-latest"]))
def test_a_model_is_found_with_a_provider_before_and_latest_behind_its_name(
    model_id: str, provider: str, suffix: str
) -> None:
    assert PriceTable.shipped().get(f"{provider}{model_id}{suffix}") == PriceTable.shipped()[model_id]


@given(st.sampled_from(["", "openai/"]), st.dates())
def test_a_model_is_found_under_the_date_of_its_snapshot(provider: str, date: Any) -> None:
    assert known_id(f"{provider}gpt-5.4-{date.isoformat()}", {"gpt-5.4", "gpt-5"}) == "gpt-5.4"


@given(shipped_ids, st.text())
def test_a_model_is_never_found_by_the_beginning_of_its_name(model_id: str, rest: str) -> None:
    longer = f"{model_id}-mini{rest}-x"
    assert known_id(longer, {model_id}) is None
    assert known_id(f"{model_id}-2026-03-05-preview", {model_id}) is None


@given(st.text(), st.sets(st.text()))
def test_a_known_id_is_one_of_those_known_and_the_exact_one_comes_first(model_id: str, known: set[str]) -> None:
    found = known_id(model_id, known)
    assert found is None or found in known
    assert known_id(model_id, known | {model_id}) == model_id


def test_an_id_without_its_provider_comes_before_one_without_its_date() -> None:
    assert known_id("a/m-2026-01-01", {"a/m", "m", "m-2026-01-01"}) == "m-2026-01-01"
    assert known_id("a/m-2026-01-01", {"a/m", "m"}) == "a/m"
    assert known_id("a/m-2026-01-01", {"m"}) == "m"


def test_only_digits_make_a_date_and_only_the_end_counts() -> None:
    for model_id in ("m-2026-3-5", "m-20260305", "m-\u0662026-03-05", "m-2026-03-05\n", "m-latest-x", "m/"):
        assert known_id(model_id, {"m"}) is None


def test_an_unknown_model_has_no_price() -> None:
    table = PriceTable.shipped()
    assert table.get("llama-3") is None
    assert "llama-3" not in table
    with pytest.raises(KeyError, match="llama-3"):
        table["llama-3"]


# --- where prices come from --------------------------------------------------------------------


@given(tables)
def test_a_table_survives_a_round_trip_through_a_mapping(source: dict[str, Any]) -> None:
    table = PriceTable.of(source)
    assert list(table) == list(source)
    assert len(table) == len(source)
    assert PriceTable.of(dict(table)) == table
    assert PriceTable.of({name: cost.model_dump() for name, cost in table.items()}) == table


@pytest.mark.parametrize("form", ["shipped", "plain"])
def test_a_table_survives_a_round_trip_through_a_file_of_either_form(tmp_path: Path, form: str) -> None:
    table = PriceTable.shipped() | {"models/größer": GIVEN}
    plain = {name: cost.model_dump() for name, cost in table.items()}
    path = written(tmp_path, {**PRICES, "models": plain} if form == "shipped" else plain)
    assert PriceTable.of(path) == table
    assert PriceTable.of(str(path)) == table


def test_a_path_may_begin_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    written(tmp_path, {"m": {"input": 1, "output": 2}})
    assert PriceTable.of("~/prices.json")["m"].output == 2.0


def test_a_table_is_taken_as_it_is() -> None:
    assert PriceTable.of(PriceTable.shipped()) is PriceTable.shipped()


def test_the_shipped_prices_are_read_on_first_use_and_not_at_import() -> None:
    script = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from yiemagent_nb.backends.prices import PriceTable
assert not [name for name in opened if name.endswith("prices.json")], opened
PriceTable.shipped(), PriceTable.shipped()
print(len([name for name in opened if name.endswith("prices.json")]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


# --- one over another ------------------------------------------------------------------------------


@given(tables, tables)
def test_of_two_tables_the_right_one_wins(left: dict[str, Any], right: dict[str, Any]) -> None:
    expected = {**PriceTable.of(left), **PriceTable.of(right)}
    assert PriceTable.of(left) | right == expected
    assert left | PriceTable.of(right) == expected
    assert PriceTable.of(left) | PriceTable.of(right) == expected


def test_laying_over_changes_neither_table() -> None:
    before = len(PriceTable.shipped())
    both = PriceTable.shipped() | {"my-model": GIVEN}
    assert both["my-model"] is not None
    assert both["gpt-5.4"] == PriceTable.shipped()["gpt-5.4"]
    assert len(both) == before + 1
    assert len(PriceTable.shipped()) == before


def test_a_table_does_not_change_with_the_mapping_that_it_came_from() -> None:
    source: dict[str, Any] = {"m": {"input": 1.0, "output": 2.0}}
    table = PriceTable.of(source)
    source["m"]["input"] = 9.0
    source["n"] = GIVEN
    assert (list(table), table["m"].input) == (["m"], 1.0)


def test_a_table_can_be_copied() -> None:
    table = PriceTable.shipped()
    assert copy.deepcopy(table) == table


def test_the_repr_stays_short() -> None:
    assert repr(PriceTable.of({"a": GIVEN, "b": GIVEN})) == "PriceTable(a, b; 2 in all)"
    assert len(repr(PriceTable.shipped())) < 100


# --- parts that are not given ---------------------------------------------------------------------


@pytest.mark.requirement("Y SP-007", "Y SP-008")
@pytest.mark.parametrize("entry", [{"input": 3, "output": 15}, ModelCost(input=3, output=15)])
def test_cached_tokens_without_a_price_of_their_own_cost_as_much_as_input(entry: Any) -> None:
    # all 1,000,000 tokens of the prompt at $3 = $3, however many of them were cached; 1,000 x $15 / 1e6 = $0.015
    cost = PriceTable.of({"m": entry})["m"]
    usage = Usage(input_tokens=1_000_000, cache_read_tokens=600_000, cache_write_tokens=300_000, output_tokens=1_000)
    assert cost.of(usage).total == pytest.approx(3.015)


def test_a_zero_that_was_given_counts() -> None:
    free = ModelCost(input=3, output=15, cache_read=0, cache_write=0)
    assert PriceTable.of({"m": free})["m"] == free
    assert PriceTable.of({"m": {"input": 3, "output": 15, "cache_read": 0, "cache_write": 0}})["m"] == free


# --- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"input": -1, "output": 2}, "'input' is negative"),
        ({"input": 1, "output": math.nan}, "'output' is not finite"),
        ({"input": 1, "output": math.inf}, "'output' is not finite"),
        ({"input": 1, "output": 2, "cache_read": 10**400}, "'cache_read' is not finite"),
        ({"input": 1, "output": 2, "cache_write": "1.25"}, "'cache_write' is str, no number"),
        ({"input": True, "output": 2}, "'input' is bool, no number"),
        ({"input": None, "output": 2}, "'input' is NoneType, no number"),
        ({"output": 2}, "has no 'input'"),
        ({"input": 2}, "has no 'output'"),
        ({"input": 1, "output": 2, "cached": 3}, "unknown field 'cached'"),
        ([1, 2], "is list, no mapping"),
        (3.0, "is float, no mapping"),
    ],
)
def test_a_bad_entry_is_refused_with_its_model_and_field(tmp_path: Path, entry: object, words: str) -> None:
    said = refusal({"good": GIVEN, "my-model": entry})
    assert "'my-model'" in said
    assert words in said
    path = written(tmp_path, {"models": {"my-model": entry}})
    assert "prices.json" in refusal(path)
    assert words in refusal(path)


@pytest.mark.parametrize("model_id", ["", 5, None])
def test_a_model_without_a_name_is_refused(model_id: object) -> None:
    assert f"A model id is {model_id!r}; expected a text" in refusal({model_id: GIVEN})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no JSON"),
        ('{"m": ', "holds no JSON"),
        ("[" * 200_000, "holds no JSON"),
        ('{"m": {"input": ' + "1" * 5_000 + ', "output": 1}}', "holds no JSON"),
        ("[]", "no mapping of model id to prices"),
        ('{"models": [1]}', "no mapping of model id to prices"),
        ('{"currency": "EUR per million tokens", "models": {}}', "currency is 'EUR per million tokens'"),
        ('{"m": {"input": NaN, "output": 1}}', "'input' is not finite"),
    ],
)
def test_a_bad_file_is_refused_with_its_path(tmp_path: Path, content: str, words: str) -> None:
    path = written(tmp_path, content)
    said = refusal(path)
    assert str(path) in said
    assert words in said


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(b"\xff\xfe\xff")
    assert "holds no JSON" in refusal(path)


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: FileNotFoundError" in refusal(tmp_path / "none.json")
    assert "cannot be read" in refusal(tmp_path)
    assert "cannot be read: ValueError" in refusal("nul\0.json")


@pytest.mark.parametrize("source", [None, 5, [("m", GIVEN)], b"prices.json", ModelCost])
def test_what_is_neither_table_nor_mapping_nor_path_is_refused(source: object) -> None:
    assert "Expected a PriceTable, a mapping of model id to prices, or the path" in refusal(source)


# --- the shipped files ---------------------------------------------------------------------------------


def test_both_files_list_the_same_models_in_the_same_order() -> None:
    assert list(PRICES["models"]) == list(MODELS["models"])


@pytest.mark.parametrize("file", [PRICES, MODELS], ids=["prices", "models"])
def test_each_file_says_where_it_comes_from_and_when_it_was_checked(file: dict[str, Any]) -> None:
    assert file["source"]
    assert file["checked"].count("-") == 2


@pytest.mark.parametrize("model_id", list(PRICES["models"]))
def test_a_shipped_price_is_valid_and_reading_a_cache_is_no_dearer_than_input(model_id: str) -> None:
    cost = PriceTable.shipped()[model_id]
    assert PRICES["models"][model_id].items() <= cost.model_dump().items()
    assert 0 < cost.cache_read <= cost.input < cost.output
    assert cost.input <= cost.cache_write


@pytest.mark.parametrize("model_id", list(MODELS["models"]))
def test_a_shipped_model_is_valid(model_id: str) -> None:
    entry = MODELS["models"][model_id]
    assert set(entry) == {"context_window", "max_tokens", "input", "efforts", "responses_only"}
    model = LlmModel(
        id=model_id,
        input=tuple(entry["input"]),
        reasoning=bool(entry["efforts"]),
        context_window=entry["context_window"],
        max_tokens=entry["max_tokens"],
    )
    assert model.context_window is not None
    assert model.max_tokens is not None
    assert model.max_tokens < model.context_window
    assert entry["efforts"] == [effort for effort in EFFORTS if effort in entry["efforts"]]
    assert isinstance(entry["responses_only"], bool)


def test_hand_checked_prices_of_a_few_models() -> None:
    table = PriceTable.shipped()
    assert table["gpt-4o-mini"] == ModelCost(input=0.15, output=0.6, cache_read=0.075, cache_write=0.15)
    assert table["gpt-5.4"] == ModelCost(input=2.5, output=15.0, cache_read=0.25, cache_write=2.5)
    assert table["gpt-5.4-mini"] == ModelCost(input=0.75, output=4.5, cache_read=0.075, cache_write=0.75)
    assert table["gpt-6.2-sol"] == ModelCost(input=2.0, output=10.0, cache_read=0.1, cache_write=2.5)
    assert table["gpt-4o-2024-05-13"] != table["gpt-4o-2024-11-20"] == table["gpt-4o"]
