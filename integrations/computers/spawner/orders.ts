/** What a host asks its spawner for. `id` names what is started in all that is said of it. */
export type SpawnerOrder =
  /** A program of the system: runs to its end, which is told as `ran`. */
  | { do: 'run'; id: number; file: string; args: string[]; timeoutMs: number }
  /** A holder, detached, with its output and complaints in a log. Told as `started`, its reports, and `ended`. */
  | { do: 'hold'; id: number; file: string; args: string[]; log: string }
  /** A line for a holder. */
  | { do: 'send'; id: number; line: string }
  /** It is to go on without us: its pipes are closed. */
  | { do: 'letGo'; id: number }
  | { do: 'kill'; id: number };

export type SpawnerNews =
  | { id: number; news: 'ran'; output: string }
  | { id: number; news: 'failed'; reason: string }
  | { id: number; news: 'started'; pid: number }
  | { id: number; news: 'report'; line: string }
  /** After its last report. How, in parentheses, where there is anything to say. */
  | { id: number; news: 'ended'; how: string };
