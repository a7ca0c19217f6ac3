// Follows the end of what scrolls, while the reader is there.

const NEAR = 40;
/** Milliseconds after a wheel, a finger or a key in which it shows whether the reader went away from the end. */
const HAND = 400;

export class Follower {
  following = true;
  private top = 0;
  private hand: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly onTurn: () => void,
  ) {
    const options = { passive: true };
    scroller.addEventListener("scroll", () => this.onScroll(), options);
    scroller.addEventListener("touchmove", () => this.takeHand(), options);
    scroller.addEventListener("wheel", (event) => (event.deltaY < 0 ? this.takeHand() : this.endHand()), options);
    scroller.addEventListener("keydown", (event) => {
      if (["ArrowUp", "PageUp", "Home"].includes(event.key)) this.takeHand();
    });
  }

  toEnd(): void {
    this.endHand();
    this.turn(true);
    this.keep();
  }

  /** The reader is somewhere else now. */
  leave(): void {
    this.turn(false);
  }

  /** Stay at the end, if the reader is there. */
  keep(): void {
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** Follow if this is the end. */
  judge(): void {
    this.turn(this.distance < 2);
  }

  private get distance(): number {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
  }

  /** The reader scrolls: what comes meanwhile must not pull them back. */
  private takeHand(): void {
    if (this.scroller.scrollTop === 0) return;
    this.turn(false);
    clearTimeout(this.hand);
    this.hand = setTimeout(() => {
      this.endHand();
      if (this.distance < 2) this.turn(true);
    }, HAND);
  }

  private endHand(): void {
    clearTimeout(this.hand);
    this.hand = undefined;
  }

  private onScroll(): void {
    const { distance } = this;
    const moved = this.scroller.scrollTop - this.top;
    this.top = this.scroller.scrollTop;
    if (this.hand !== undefined) return; // it may still tell of a place from before
    if (moved < -1 && distance >= NEAR) this.turn(false);
    else if (distance <= 1 || (moved > 0 && distance < NEAR)) this.turn(true);
  }

  private turn(following: boolean): void {
    if (this.following === following) return;
    this.following = following;
    this.onTurn();
  }
}
