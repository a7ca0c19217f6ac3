// A server's question, as long as it waits for an answer. Settled, it is one quiet line.

import { h } from "./dom";
import type { Asked } from "./entries";
import { PartPlace } from "./part_place";
import type { QuestionAction } from "./protocol";
import { quietLine, settle } from "./settled";

export interface QuestionActions {
  answer(requestId: string, action: QuestionAction, content: Record<string, unknown> | null): Promise<unknown>;
}

const VERBS: Record<QuestionAction, string> = { accept: "Answered", decline: "Declined", cancel: "Dismissed" };

export class QuestionView {
  readonly element = h("div", { class: "yna-entry yna-asks" });
  private settled = false;

  constructor(
    private readonly asked: Asked,
    actions: QuestionActions,
  ) {
    if (asked.action === null) {
      const what = `The question from ${asked.question.source}`;
      const place = new PartPlace("questions", what, (part) => new part.QuestionCard(asked, actions));
      this.element.append(place.element);
      place.open();
    }
    this.update();
  }

  update(): boolean {
    const { action, question } = this.asked;
    if (action === null || this.settled) return true;
    this.settled = true;
    settle(this.element, quietLine(`${VERBS[action]} ${question.source}’s question`, action === "accept"));
    return true;
  }

  updateCall(): void {}

  dispose(): void {}
}
