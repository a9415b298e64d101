/** What is in no backup, or in no database that was made from one, though it was in what that was made from. */
export interface LeftOutThing {
  kind: 'table' | 'view' | 'function' | 'procedure' | 'trigger';
  name: string;
}

const mostNamed = 50;

/** Counts all of it, and names the first. */
export class LeftOut {
  count = 0;
  readonly items: LeftOutThing[] = [];

  add(thing: LeftOutThing): void {
    this.count++;
    if (this.items.length < mostNamed) this.items.push(thing);
  }
}
