/** 127.64.0.0/10: loopback addresses, which the kernel delivers here and programs do not use on their own. */
const base = 0x7f_40_00_00;
const size = 1 << 22;

/**
 * Maps names to addresses and back. A name's address is derived from the name, so it stays the same over restarts. When
 * the table is full, the least recently used name is dropped.
 */
export class NameTable {
  readonly #maxNames: number;
  /** Ordered by last use. */
  readonly #slots = new Map<string, number>();
  readonly #names = new Map<number, string>();

  constructor(maxNames = 20_000) {
    this.#maxNames = maxNames;
  }

  addressOf(name: string): number {
    const slot = this.#slots.get(name) ?? this.#take(name);
    this.#touch(name, slot);
    return base + slot;
  }

  nameOf(address: number): string | undefined {
    const slot = address - base;
    const name = this.#names.get(slot);
    if (name !== undefined) this.#touch(name, slot);
    return name;
  }

  #touch(name: string, slot: number): void {
    this.#slots.delete(name);
    this.#slots.set(name, slot);
  }

  #take(name: string): number {
    const [oldest] = this.#slots;
    if (oldest !== undefined && this.#slots.size >= this.#maxNames) {
      this.#slots.delete(oldest[0]);
      this.#names.delete(oldest[1]);
    }
    let slot = hash(name) % size;
    while (this.#names.has(slot)) slot = (slot + 1) % size;
    this.#names.set(slot, name);
    return slot;
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x81_1c_9d_c5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01_00_01_93);
  return value >>> 0;
}

/** Parses `127.64.0.1` into a number. Undefined if the text is not an IPv4 address. */
export function parseIpv4(text: string | undefined): number | undefined {
  const parts = (text ?? '').replace(/^::ffff:/, '').split('.');
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) return undefined;
  return parts.reduce((value, part) => value * 256 + Number(part), 0);
}
