/**
 * The fetch that the SDKs are given. It sees every byte of an answer before the SDK does, which is what tells a silent
 * provider from one that only sends keep-alives, and knows by the call's signal whose bytes they are.
 */
export class ProviderFetch {
  private readonly listeners = new WeakMap<AbortSignal, () => void>();
  private readonly baseFetch: typeof globalThis.fetch;

  constructor(baseFetch: typeof globalThis.fetch) {
    this.baseFetch = baseFetch;
  }

  /** Calls back whenever bytes come for the request made with this signal. */
  onBytes(signal: AbortSignal, listener: () => void): void {
    this.listeners.set(signal, listener);
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await this.baseFetch(input, init);
    const listener = init?.signal ? this.listeners.get(init.signal) : undefined;
    listener?.();
    if (!response.ok || response.body === null) return response;
    const { status, headers } = response;
    return new Response(tap(response.body, listener), { status, headers });
  };
}

function tap(body: ReadableStream<Uint8Array>, listener: (() => void) | undefined): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        listener?.();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
