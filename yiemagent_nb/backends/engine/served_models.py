"""The models of one server: which answers, what is known of it, and what it costs."""

from __future__ import annotations

from yiemagent_nb.backends.engine.habits import Habits
from yiemagent_nb.backends.http.connection import HttpConnection
from yiemagent_nb.backends.prices import PriceTable
from yiemagent_nb.core.errors import BackendNotFoundError
from yiemagent_nb.core.models import LlmModel, ModelCost

__all__ = ["ServedModels"]


class ServedModels:
    """Finds the model for a question, and makes it ready once.

    Args:
        habits: What the server is asked in a way of its own.
        base_url: Its address, as it stands in models.
        prices: The user's prices; None takes the shipped ones.
        chosen: The model that the user chose.
    """

    def __init__(self, habits: Habits, base_url: str, prices: PriceTable | None, chosen: str | LlmModel | None) -> None:
        self._habits = habits
        self._base_url = base_url
        self._prices = prices
        self.chosen = None if chosen is None else self.describe(chosen)
        self._first: LlmModel | None = None
        """The first that the server listed, where the user chose none."""
        self._ready: dict[LlmModel | str, LlmModel] = {}
        """Models that were made ready, by how they were asked for."""

    @property
    def default(self) -> LlmModel | None:
        """The model that answers when nobody names one, with what is known of it by now."""
        model = self.chosen or self._first
        return None if model is None else self._ready.get(model, model)

    def describe(self, model: LlmModel | str) -> LlmModel:
        """A model with what its name tells; what the user says of it goes before."""
        if isinstance(model, str):
            return self._priced(self._habits.describe(model, self._base_url))
        said = {name: getattr(model, name) for name in model.model_fields_set}
        return self._priced(self._habits.describe(model.id, self._base_url).model_copy(update=said))

    async def list(self, http: HttpConnection) -> list[LlmModel]:
        """What the server lists, with prices.

        Raises:
            BackendError: It could not be asked.
        """
        return [self._priced(model) for model in await self._habits.models(http)]

    async def ready(self, asked: LlmModel | str | None, http: HttpConnection) -> LlmModel:
        """The model to ask, made ready.

        Raises:
            BackendError: The server has none, or cannot make it ready.
        """
        if asked is None:
            asked = await self.first(http)
        ready = self._ready.get(asked)
        if ready is None:
            described = self.describe(asked)
            ready = self._ready[asked] = self._priced(await self._habits.prepare(described, http))
            self._ready[ready] = ready
        return ready

    def forget(self, model: LlmModel) -> None:
        """Make this model ready anew at the next question."""
        self._ready = {asked: ready for asked, ready in self._ready.items() if ready.id != model.id}

    def forget_all(self) -> None:
        """Make every model ready anew."""
        self._ready = {}

    def forget_first(self, model: LlmModel) -> bool:
        """Look anew which model is the first, where this one was it; says whether it was."""
        if self.chosen is not None or self._first is None or self._first.id != model.id:
            return False
        self._first = None
        self.forget(model)
        return True

    def cost_of(self, model: LlmModel) -> ModelCost | None:
        """The prices of a model; none at all for one on people's own machines, None where they are unknown."""
        if self._prices is not None and (cost := self._prices.get(model.id)) is not None:
            return cost
        if model.cost != ModelCost() or self._habits.is_local:
            return model.cost
        return PriceTable.shipped().get(model.id)

    def _priced(self, model: LlmModel) -> LlmModel:
        cost = self.cost_of(model)
        return model if cost is None or cost == model.cost else model.model_copy(update={"cost": cost})

    async def first(self, http: HttpConnection) -> LlmModel:
        """The model that the user chose, else the first that the server lists.

        Raises:
            BackendError: The server could not be asked, or lists none.
        """
        model = self.chosen or self._first
        if model is None:
            models = await self.list(http)
            if not models:
                raise BackendNotFoundError(
                    f"{http.shown} lists no model.", "Load one on the server, or give the model's name."
                )
            model = self._first = models[0]
        return model
