// Files that a person adds: a chip each, above what is written.

import { h, icon } from "./dom";
import { loadPart } from "./parts";
import type { Attachment } from "./protocol";
import { bytes as inWords } from "./text";

/** A file that is ready to be sent. */
export interface Attached extends Attachment {
  /** What a person reads beside its name. */
  note: string;
}

function noteOf({ mime_type: type, data }: Attachment): string {
  return type.startsWith("image/") ? "" : inWords(Math.floor((data.length * 3) / 4));
}

/** Read a file; an Error with a sentence for the person where it cannot be sent. */
async function read(file: File, name: string): Promise<Attached> {
  const part = await loadPart("files").catch(() => {
    throw new Error(`${name} was not read: the part of the widget that reads files could not be loaded. Attach it again.`);
  });
  return part.readUpload(file);
}

interface Chip {
  name: string;
  element: HTMLElement;
  /** Null while it is being read. */
  file: Attached | null;
  /** What is being read. */
  source: File | null;
}

/** The files of the draft: a chip each, which can be taken away. */
export class AttachmentBar {
  readonly element = h("div", { class: "yna-chips", role: "list", label: "Attached files", hidden: true });
  private chips: Chip[] = [];
  private waiters: (() => void)[] = [];

  constructor(
    private readonly onChange: () => void,
    private readonly onProblem: (text: string) => void,
    private readonly onEmpty: () => void,
  ) {}

  /** What is ready to be sent. */
  get files(): Attached[] {
    return this.chips.flatMap(({ file }) => file ?? []);
  }

  /** All there is, for another bar to put back. */
  get draft(): (Attachment | File)[] {
    return this.chips.flatMap(({ file, source }) => file ?? source ?? []);
  }

  /** The names of what is being read. */
  get reading(): string[] {
    return this.chips.filter(({ file }) => !file).map(({ name }) => name);
  }

  /** Read files and add them; one that cannot be sent is told of. */
  add(files: Iterable<File>): void {
    for (const file of files) {
      const chip = this.append(file.name || "pasted", null, file);
      read(file, chip.name)
        .then(
          (done) => {
            if (this.chips.includes(chip)) this.complete(chip, done);
          },
          (error: unknown) => {
            if (!this.chips.includes(chip)) return;
            this.drop(chip);
            this.onProblem(error instanceof Error ? error.message : String(error));
          },
        )
        .finally(() => this.changed());
    }
    this.changed();
  }

  /** Put files back that were read before. */
  put(files: (Attachment | File)[]): void {
    for (const file of files) {
      if (file instanceof File) this.add([file]);
      else this.append(file.name, { note: noteOf(file), ...file });
    }
    this.changed();
  }

  /** Take away what was sent. */
  remove(files: Attached[]): void {
    for (const chip of [...this.chips]) if (chip.file && files.includes(chip.file)) this.drop(chip);
    this.changed();
  }

  /** Wait until nothing is being read. */
  settled(): Promise<void> {
    if (this.reading.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  private append(name: string, file: Attached | null, source: File | null = null): Chip {
    const element = h("div", { class: "yna-chip", role: "listitem" });
    const chip: Chip = { name, element, file: null, source };
    this.chips.push(chip);
    this.element.append(element);
    if (file) this.complete(chip, file);
    else this.draw(chip, "reading…", h("span", { class: "yna-spinner" }));
    return chip;
  }

  private complete(chip: Chip, file: Attached): void {
    chip.file = file;
    const isImage = file.mime_type.startsWith("image/");
    const src = `data:${file.mime_type};base64,${file.data}`;
    this.draw(chip, file.note, isImage ? h("img", { class: "yna-chip-image", src, alt: "" }) : icon("file"));
  }

  private draw(chip: Chip, note: string, picture: Element): void {
    const remove = h(
      "button",
      { class: "yna-quiet yna-chip-remove", title: "Take away", label: `Remove ${chip.name}`, onclick: () => this.takeAway(chip) },
      icon("cross"),
    );
    chip.element.replaceChildren(
      picture,
      h(
        "span",
        { class: "yna-chip-words" },
        h("span", { class: "yna-chip-name", title: chip.name }, chip.name),
        h("span", { class: "yna-chip-note" }, note),
      ),
      remove,
    );
  }

  private takeAway(chip: Chip): void {
    const next = this.chips[this.chips.indexOf(chip) + 1] ?? this.chips[this.chips.indexOf(chip) - 1];
    this.drop(chip);
    this.changed();
    const button = next?.element.querySelector("button");
    if (button) button.focus();
    else this.onEmpty();
  }

  private drop(chip: Chip): void {
    this.chips = this.chips.filter((each) => each !== chip);
    chip.element.remove();
  }

  private changed(): void {
    this.element.hidden = this.chips.length === 0;
    if (this.reading.length === 0) for (const resolve of this.waiters.splice(0)) resolve();
    this.onChange();
  }
}
