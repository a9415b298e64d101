/** Passes bytes through, and records whether reading them failed. */
export class Source {
  failure: unknown;
  private readonly from: AsyncIterable<Buffer>;

  constructor(from: AsyncIterable<Buffer>) {
    this.from = from;
  }

  async *bytes(): AsyncGenerator<Buffer> {
    try {
      yield* this.from;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}
