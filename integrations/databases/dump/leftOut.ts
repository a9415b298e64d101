/** Something that is missing in a backup, or in a database that was made from one. */
export interface LeftOutThing {
  kind: 'table' | 'view' | 'function' | 'procedure' | 'trigger';
  name: string;
}

const mostNamed = 50;

/** Counts everything, and names the first ones. */
export class LeftOut {
  count = 0;
  readonly items: LeftOutThing[] = [];

  add(thing: LeftOutThing): void {
    this.count++;
    if (this.items.length < mostNamed) this.items.push(thing);
  }
}
