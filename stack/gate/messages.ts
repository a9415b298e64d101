/** What the gate is told by the process that has started it, each with the socket on which to listen. */
export type GateOrder =
  /** Lets processes of this user through to the server. */
  | { open: 'server'; user: number; upstreamPort: number }
  /** Lets browsers with this key through to the UI. */
  | { open: 'ui'; key: string; port: number; upstreamPort: number };
