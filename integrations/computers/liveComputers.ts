import type { HostClient } from './hostClient.ts';
import type { ComputerMetrics } from './types.ts';

/** A computer of a space. */
export interface ComputerRef {
  spaceId: string;
  computerId: string;
}

/** On whose behalf a computer is woken, as the audit log has it. */
export interface WokenBy {
  userId: string;
  /** Of their session or key. */
  credentialId: string | null;
  address: string | null;
}

/**
 * The way to what is live on computers, for the API and for activities alike. All throw 404 for a computer that is
 * absent, or another space’s.
 */
export interface LiveComputers {
  /** Wakes it first, and counts as use. Throws 402, 409, 503. */
  awake(ref: ComputerRef, by: WokenBy): Promise<HostClient>;
  /**
   * As it is: looking wakes nothing. Throws 409 `COMPUTER_NOT_RUNNING` for one that was never used; of one that does not
   * run, what is asked of the client does.
   */
  asIs(ref: ComputerRef): Promise<HostClient>;
  /** The same, for what is asked of the computer itself. Throws 409 `COMPUTER_PAUSED` too: one that stands still never answers. */
  unpaused(ref: ComputerRef): Promise<HostClient>;
  /**
   * For what Atrium itself runs among its files (`HostClient.own`): in the computer while it runs, else beside it,
   * without network. It keeps no computer awake, and users do not see it. Throws 409 `COMPUTER_NOT_RUNNING` for one that was never used, `COMPUTER_PAUSED`, and 429 or 503 `FILES_BUSY`.
   */
  work(ref: ComputerRef): Promise<HostClient>;
  /** Waits, not for long, for a wake that is under way: what has been woken by a command answers before it is shown as running. */
  settled(ref: ComputerRef): Promise<void>;
  /** Only while it runs, for what nothing is started for. Throws 409 `COMPUTER_NOT_RUNNING` else, 503 `COMPUTER_WAKES` where it is about to. */
  running(ref: ComputerRef): Promise<HostClient>;
}

/** A host that can be asked from this process: its own, or another’s by its address. */
export interface LiveHost {
  /** To a computer that runs. */
  client(computerId: string): HostClient;
  /** To the files and logs of a computer, running or not. */
  files(computerId: string): Promise<HostClient>;
  /** The same, where Atrium’s own processes may be started, without network where it does not run. */
  work(computerId: string): Promise<HostClient>;
  metrics(computerId: string): Promise<ComputerMetrics>;
}

/** The way to a host. Throws 503 `HOST_LOST` where there is none. */
export type HostOf = (hostId: string) => Promise<LiveHost>;
