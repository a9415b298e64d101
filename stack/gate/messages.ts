/** Messages from the process that starts the gate. Each comes with the socket on which the gate listens. */
export type GateOrder =
  /** Lets processes of this user through to the server. */
  | { open: 'server'; user: number; upstreamPort: number }
  /** Lets browsers with this key through to the UI. */
  | { open: 'ui'; key: string; port: number; upstreamPort: number };
