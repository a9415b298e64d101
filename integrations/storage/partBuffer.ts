/**
 * The bytes of a part. The memory grows with them, up to the size of a part, and is reused for the next part: new
 * memory each time costs a full garbage collection per 64 MiB.
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

  /** Copies the bytes that fit, and returns their number. */
  append(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.maxBytes - this.length);
    this.grow(this.length + count);
    new Uint8Array(this.memory).set(count === bytes.length ? bytes : bytes.subarray(0, count), this.length);
    this.length += count;
    return count;
  }

  /** Valid until `clear`. */
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
