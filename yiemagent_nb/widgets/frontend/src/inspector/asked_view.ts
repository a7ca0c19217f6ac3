// What waits for a person and is of no call by hand: what a server asks them, or the model, while it works.

import { h, icon, setText } from "../dom";
import type { Asked } from "../entries";
import { QuestionCard } from "../question_card";
import { visible } from "../text";
import { approvalElement } from "./approval";
import { sourceName, type Inspected } from "./inspected";

export class AskedView {
  readonly element: HTMLElement;
  private readonly strip = h("details", { class: "yna-asked-strip" });
  private readonly title = h("span", { role: "status" });
  private readonly list = h("div", { class: "yna-asked-cards" });
  /** The cards by the name of their request: what is entered stays while others come and go. */
  private readonly cards = new Map<string, HTMLElement>();

  /**
   * `leave` takes the keyboard where what had it is answered; `concerns` tells whether a source is the one that is
   * looked at: its questions stand unfolded.
   */
  constructor(
    private readonly inspected: Inspected,
    private readonly leave: () => void,
    private readonly concerns: (source: string) => boolean,
  ) {
    this.strip.append(h("summary", {}, icon("chevron"), this.title), this.list);
    this.element = h("div", { class: "yna-inspector-asked", role: "group", label: "Waits for you", hidden: true }, this.strip);
  }

  update(): void {
    const { approvals, questions, context } = this.inspected;
    const sources = new Map([...approvals, ...questions].map(({ request_id: id, source }) => [id, source]));
    const wanted = new Map<string, () => HTMLElement>();
    for (const request of approvals) {
      wanted.set(request.request_id, () => approvalElement(context, request, request.source ? ` for ${visible(request.source)}` : ""));
    }
    for (const question of questions) {
      const asked: Asked = { question, action: null, draft: new Map() };
      const answer = (requestId: string, action: string, content: unknown): Promise<unknown> =>
        context.ask({ type: "answer", request_id: requestId, action, content });
      wanted.set(question.request_id, () => new QuestionCard(asked, { answer }).element);
    }
    const hadFocus = this.list.contains(document.activeElement);
    for (const [id, card] of this.cards) {
      if (wanted.has(id)) continue;
      card.remove();
      this.cards.delete(id);
    }
    for (const [id, make] of wanted) {
      if (this.cards.has(id)) continue;
      const card = make();
      this.cards.set(id, card);
      this.list.append(card);
      const source = sources.get(id) ?? "";
      if (this.concerns(source)) this.strip.open = true;
    }
    this.element.hidden = this.cards.size === 0;
    if (this.element.hidden) this.strip.open = false;
    const names = [...new Set(sources.values())].filter(Boolean).map(sourceName).join(", ");
    setText(this.title, this.cards.size === 0 ? "" : `${names || "Something"} ${this.cards.size === 1 ? "waits for your answer" : `: ${this.cards.size} questions wait for your answer`}`);
    if (hadFocus && !this.list.contains(document.activeElement)) this.leave();
  }
}
