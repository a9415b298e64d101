import { pieceLength, piecesOf } from './secretForms.ts';
import { atOnce } from './slices.ts';
import { TextSkipper } from './textSkipper.ts';

/**
 * The automaton contains only this much of a text of `pieceLength`: a long secret has many of these, and each character
 * is a node.
 */
const anchorLength = 8;

/**
 * An Aho–Corasick automaton over many texts. It reads one character at a time and knows at each which of the texts ends
 * there, in a time that does not depend on how many there are. Written here because it must work across pieces of a
 * stream, in little memory, and tell what may still become a match.
 */
export class SecretAutomaton {
  readonly isEmpty: boolean;
  readonly #skipper: TextSkipper;
  /** Texts of which only the anchor is in the automaton. */
  readonly #anchored = new Set<string>();
  /**
   * By node: its depth, the longest text that ends there, whether an anchor ends there, and the node to continue at
   * when no child matches.
   */
  readonly #depth: Uint8Array;
  readonly #found: Uint8Array;
  readonly #anchor: Uint8Array;
  readonly #fail: Int32Array;
  /** The children by node and character, in a hash table with open addressing. */
  readonly #keyNode: Int32Array;
  readonly #keyUnit: Uint16Array;
  readonly #child: Int32Array;
  readonly #mask: number;

  /** Allocates room for texts that are still to be inserted. */
  private constructor(known: readonly string[]) {
    this.isEmpty = known.length === 0;
    let room = 1;
    let shortest = pieceLength;
    for (const text of known) {
      const length = text.length < pieceLength ? text.length : anchorLength;
      room += length;
      shortest = Math.min(shortest, length);
    }
    this.#skipper = new TextSkipper(known.length, shortest);
    const slots = 2 ** Math.ceil(Math.log2(room * 2));
    this.#mask = slots - 1;
    this.#keyNode = new Int32Array(slots).fill(-1);
    this.#keyUnit = new Uint16Array(slots);
    this.#child = new Int32Array(slots);
    this.#depth = new Uint8Array(room);
    this.#found = new Uint8Array(room);
    this.#anchor = new Uint8Array(room);
    this.#fail = new Int32Array(room);
  }

  /** An automaton that is built at once, for few texts. */
  static of(texts: Iterable<string>): SecretAutomaton {
    return atOnce(SecretAutomaton.building(texts));
  }

  /** Builds one, and yields the number of characters that it has worked on. */
  static *building(texts: Iterable<string>): Generator<number, SecretAutomaton> {
    const known: string[] = [];
    for (const text of new Set(texts)) {
      if (text !== '') known.push(...piecesOf(text));
      yield 1;
    }
    const automaton = new SecretAutomaton(known);
    yield* automaton.#link(yield* automaton.#insert(known));
    return automaton;
  }

  /** The first position at or after `from` where a text may begin. Only for an automaton in its initial state. */
  skip(text: string, from: number): number {
    return this.#skipper.skip(text, from);
  }

  /** The state after one more UTF-16 unit. The initial state is 0. */
  next(state: number, unit: number): number {
    for (let node = state; ; node = this.#fail[node] ?? 0) {
      const child = this.#childOf(node, unit);
      if (child !== 0) return child;
      if (node === 0) return 0;
    }
  }

  /** How many of the characters read last may be the beginning of a text. */
  depthOf(state: number): number {
    return this.#depth[state] ?? 0;
  }

  /** The length of the longest text that ends here. 0 when none does. */
  foundAt(state: number): number {
    return this.#found[state] ?? 0;
  }

  /**
   * How far back a text of `pieceLength` may have begun. Its rest is to be checked with `isPiece`. 0 when none may
   * have.
   */
  anchorAt(state: number): number {
    return this.#anchor[state] === 1 ? anchorLength : 0;
  }

  isPiece(text: string): boolean {
    return this.#anchored.has(text);
  }

  /** Returns each node's parent and unit. */
  *#insert(texts: readonly string[]): Generator<number, { parent: Int32Array; unit: Uint16Array; count: number }> {
    const parent = new Int32Array(this.#depth.length);
    const unit = new Uint16Array(this.#depth.length);
    let count = 1;
    for (const text of texts) {
      const part = inAutomaton(text);
      let node = 0;
      for (let at = 0; at < part.length; at++) {
        const code = part.charCodeAt(at);
        let child = this.#childOf(node, code);
        if (child === 0) {
          child = count++;
          this.#addChild(node, code, child);
          parent[child] = node;
          unit[child] = code;
          this.#depth[child] = at + 1;
        }
        node = child;
      }
      if (part === text) this.#found[node] = text.length;
      else {
        this.#anchor[node] = 1;
        this.#anchored.add(text);
      }
      this.#skipper.add(part);
      yield part.length;
    }
    return { parent, unit, count };
  }

  /** Shallow nodes first, since a node falls back to a shallower one. */
  *#link({ parent, unit, count }: { parent: Int32Array; unit: Uint16Array; count: number }): Generator<number, void> {
    const byDepth: number[][] = [];
    for (let node = 1; node < count; node++) {
      const depth = this.depthOf(node);
      byDepth[depth] ??= [];
      byDepth[depth].push(node);
      yield 1;
    }
    for (const nodes of byDepth.slice(1)) {
      for (const node of nodes) {
        const above = parent[node] ?? 0;
        const fail = above === 0 ? 0 : this.next(this.#fail[above] ?? 0, unit[node] ?? 0);
        this.#fail[node] = fail;
        if (this.foundAt(node) === 0) this.#found[node] = this.foundAt(fail);
        if (this.#anchor[fail] === 1) this.#anchor[node] = 1;
        yield 1;
      }
    }
  }

  #childOf(node: number, unit: number): number {
    for (let slot = slotOf(node, unit) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const key = this.#keyNode[slot];
      if (key === -1) return 0;
      if (key === node && this.#keyUnit[slot] === unit) return this.#child[slot] ?? 0;
    }
  }

  #addChild(node: number, unit: number, child: number): void {
    let slot = slotOf(node, unit) & this.#mask;
    while (this.#keyNode[slot] !== -1) slot = (slot + 1) & this.#mask;
    this.#keyNode[slot] = node;
    this.#keyUnit[slot] = unit;
    this.#child[slot] = child;
  }
}

function inAutomaton(text: string): string {
  return text.length < pieceLength ? text : text.slice(0, anchorLength);
}

function slotOf(node: number, unit: number): number {
  const mixed = Math.imul(node, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
