/**
 * A part's bytes. Its memory grows with them, to a part's size at most, and is reused for one part after the other:
 * streaming through new memory each time costs a full garbage collection per 64 MiB.
 */
export class PartBuffer {
  private readonly maxBytes: number;
  private memory = new ArrayBuffer(0);
  private length = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  get isFull(): boolean {
    return this.length === this.maxBytes;
  }

  /** Copies as many of the bytes as there is room for, and returns how many. */
  append(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.maxBytes - this.length);
    this.grow(this.length + count);
    new Uint8Array(this.memory).set(count === bytes.length ? bytes : bytes.subarray(0, count), this.length);
    this.length += count;
    return count;
  }

  /** Its content; valid until `clear`. */
  get content(): Buffer {
    return Buffer.from(this.memory, 0, this.length);
  }

  clear(): void {
    this.length = 0;
  }

  private grow(bytes: number): void {
    if (bytes <= this.memory.byteLength) return;
    const doubled = Math.max(bytes, this.memory.byteLength * 2);
    this.memory = this.memory.transfer(Math.min(doubled, this.maxBytes));
  }
}
