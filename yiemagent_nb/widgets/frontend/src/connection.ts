// Keeps in step with Python: sequence numbers, snapshots, heartbeats, tickets.

import type { Batch, ModelProxy, PageEvent, Refusal, Snapshot } from "./protocol";

export type Status = "connecting" | "ready" | "busy" | "disconnected";

const HEARTBEAT = 5_000;
/** Milliseconds without an answer after which the kernel is busy; in mid-run also those of silence before asking. */
const PATIENCE = 2_000;
const RUN_PATIENCE = 1_500;
const TICK = 500;
const SEND_AGAIN = 3_000;
const ASK_AGAIN = 1_000;
const LOST = { code: "DISCONNECTED", message: "The kernel is gone.", hint: "Run the cell again." };

/** What a request asked for, told just before it is accepted. */
export type Reply = Extract<PageEvent, { type: "file" | "taken_back" | "reply" }>;

interface Pending {
  message: Record<string, unknown>;
  buffers: ArrayBuffer[];
  sentAt: number;
  reply: Reply | null;
  accept: (reply: Reply | null) => void;
  refuse: (refusal: Refusal) => void;
}

interface Part {
  text: Promise<string>;
  sentAt: number;
  resolve: (text: string) => void;
  reject: (reason: unknown) => void;
}

export class Connection {
  status: Status = "connecting";
  /** Whether a snapshot has come: until then nothing is known of the agent. */
  synced = false;
  onEvents: (events: PageEvent[]) => void = () => {};
  onSnapshot: (snapshot: Snapshot) => void = () => {};
  onStatus: () => void = () => {};
  isRunning: () => boolean = () => false;

  private seq = 0;
  private views = 0;
  private asked = 0;
  private waitingSince: number | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private tickets = 0;
  private readonly name = Math.random().toString(36).slice(2, 10);
  private readonly pending = new Map<string, Pending>();
  private readonly parts = new Map<string, Part>();
  private readonly loading = new Map<string, Promise<string>>();
  private readonly loaded = new Map<string, string>();

  constructor(private readonly model: ModelProxy) {
    model.on("msg:custom", (content: Batch) => this.receive(content));
    model.on("comm_live_update", () => this.doubt());
    model.on("comm:close", () => this.lose());
  }

  /** A view is shown; returns what tells that it is gone. */
  attach(): () => void {
    this.views += 1;
    if (this.views === 1) {
      this.hello();
      this.timer = setInterval(() => this.beat(), TICK);
      document.addEventListener("visibilitychange", this.onVisible);
    }
    return () => {
      this.views -= 1;
      if (this.views > 0) return;
      clearInterval(this.timer);
      document.removeEventListener("visibilitychange", this.onVisible);
      this.send({ type: "bye", page: this.name });
    };
  }

  /**
   * Ask for something that is answered; the promise of a refusal is rejected with it.
   * What must not stand in the message itself, such as a key, goes in `buffers`.
   */
  request(message: Record<string, unknown>, buffers: ArrayBuffer[] = []): Promise<Reply | null> {
    this.tickets += 1;
    const ticket = `${this.name}-${this.tickets}`;
    return new Promise((accept, refuse) => {
      const full = { ...message, ticket };
      const now = Date.now();
      this.pending.set(ticket, { message: full, buffers, sentAt: now, reply: null, accept, refuse });
      this.waitingSince ??= now;
      this.send(full, buffers);
    });
  }

  /** Tell something that is not answered. */
  tell(message: Record<string, unknown>): void {
    this.send(message);
  }

  /** The text of a part of the front end. */
  part(name: string): Promise<string> {
    const known = this.parts.get(name);
    if (known) return known.text;
    if (this.status === "disconnected") return Promise.reject(LOST);
    const part = { sentAt: Date.now() } as Part;
    part.text = new Promise((resolve, reject) => Object.assign(part, { resolve, reject }));
    this.parts.set(name, part);
    this.send({ type: "load_part", name });
    return part.text;
  }

  /** A recording in base64, by its key. */
  audio(key: string): Promise<string> {
    let loading = this.loading.get(key);
    if (!loading) {
      loading = this.request({ type: "load_audio", key }).then(() => {
        const data = this.loaded.get(key);
        if (data === undefined) throw { message: "The recording was lost on its way.", hint: "Try again." };
        return data;
      });
      loading = loading.finally(() => {
        this.loading.delete(key);
        this.loaded.delete(key);
      });
      this.loading.set(key, loading);
    }
    return loading;
  }

  /** What is shown is not what is there: ask for all of it. */
  resync(): void {
    this.synced = false;
    const now = Date.now();
    if (now - this.asked < ASK_AGAIN) return;
    this.asked = now;
    this.send({ type: "hello", last_seq: 0, page: this.name });
  }

  private readonly onVisible = (): void => {
    if (document.visibilityState === "visible") this.beat(true);
  };

  private hello(): void {
    this.asked = Date.now();
    this.waitingSince = Date.now();
    this.send({ type: "hello", last_seq: this.synced ? this.seq : 0, page: this.name });
  }

  private lastBeat = 0;
  private lastHeard = 0;

  private beat(now = false): void {
    const time = Date.now();
    if (!this.synced && time - this.asked > HEARTBEAT) this.hello();
    const running = this.isRunning();
    const silent = running && this.waitingSince === null && time - this.lastHeard >= RUN_PATIENCE;
    if (now || silent || time - this.lastBeat >= HEARTBEAT) {
      this.lastBeat = time;
      this.waitingSince ??= time;
      this.send({ type: "heartbeat", last_seq: this.seq, page: this.name });
    }
    if (this.waitingSince !== null && time - this.waitingSince >= (running ? RUN_PATIENCE : PATIENCE)) this.set("busy");
  }

  /** The host says that something happened to the connection: believe it when nothing answers. */
  private doubt(): void {
    this.set("disconnected");
    this.hello();
  }

  private lose(): void {
    this.set("disconnected");
    clearInterval(this.timer);
  }

  private set(status: Status): void {
    if (this.status === status || (this.status === "disconnected" && status === "busy")) return;
    this.status = status;
    if (status === "disconnected") {
      for (const [ticket, waiting] of this.pending) waiting.refuse({ ticket, ...LOST });
      this.pending.clear();
      for (const part of this.parts.values()) part.reject(LOST);
      this.parts.clear();
    }
    this.onStatus();
  }

  private send(message: Record<string, unknown>, buffers: ArrayBuffer[] = []): void {
    try {
      this.model.send(message, undefined, buffers);
    } catch (error) {
      console.warn("The kernel cannot be reached.", error);
      this.set("disconnected");
    }
  }

  private receive(batch: Batch): void {
    if (typeof batch?.seq !== "number" || !Array.isArray(batch.events)) return;
    this.waitingSince = null;
    this.lastHeard = Date.now();
    this.set("ready");
    this.reply(batch.events);
    const renewed = batch.snapshot !== undefined && batch.events.some((event) => event.type === "renewed");
    if (this.synced && batch.seq === this.seq + 1 && !renewed) {
      this.seq = batch.seq;
      this.onEvents(batch.events);
    } else if (batch.snapshot) {
      this.seq = batch.seq;
      this.synced = true;
      this.onSnapshot(batch.snapshot);
      this.onEvents(batch.events.filter(({ type }) => type === "notice")); // it stands in no snapshot
    } else if (!this.synced || batch.seq > this.seq) {
      this.resync();
    }
    this.askAgain();
  }

  private reply(events: PageEvent[]): void {
    for (const event of events) {
      if (event.type === "accepted") {
        const waiting = this.take(event.ticket);
        waiting?.accept(waiting.reply);
      } else if (event.type === "refused") {
        const waiting = this.take(event.ticket);
        if (waiting) waiting.refuse(event);
        else console.warn(event.message, event.hint);
      } else if (event.type === "file" || event.type === "taken_back" || event.type === "reply") {
        const waiting = this.pending.get(event.ticket);
        if (waiting) waiting.reply = event;
      } else if (event.type === "audio") {
        this.loaded.set(event.key, event.data);
      } else if (event.type === "part") {
        this.parts.get(event.name)?.resolve(event.text);
        this.parts.delete(event.name);
      }
    }
  }

  private take(ticket: string): Pending | undefined {
    const waiting = this.pending.get(ticket);
    this.pending.delete(ticket);
    return waiting;
  }

  /** A request that was lost on the way is sent again; Python carries each ticket out once. */
  private askAgain(): void {
    const now = Date.now();
    for (const waiting of this.pending.values()) {
      if (now - waiting.sentAt < SEND_AGAIN) continue;
      waiting.sentAt = now;
      this.send(waiting.message, waiting.buffers);
    }
    for (const [name, part] of this.parts) {
      if (now - part.sentAt < SEND_AGAIN) continue;
      part.sentAt = now;
      this.send({ type: "load_part", name });
    }
  }
}
