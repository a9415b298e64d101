import type { HostClient } from './hostClient.ts';
import type { ComputerMetrics } from './types.ts';

export interface ComputerRef {
  spaceId: string;
  computerId: string;
}

/** The caller for whom a computer is woken, as the audit log records it. */
export interface WokenBy {
  userId: string;
  /** The id of the caller's session or key. */
  credentialId: string | null;
  address: string | null;
}

/**
 * Access to live computers, for the API and for activities. All methods throw 404 for a computer that is absent or in
 * another space.
 */
export interface LiveComputers {
  /** Wakes the computer, and counts as use. Throws 402, 409, 503. */
  awake(ref: ComputerRef, by: WokenBy): Promise<HostClient>;
  /**
   * Does not wake the computer. Throws 409 `COMPUTER_NOT_RUNNING` if it was never used. If it is stopped, the client's
   * requests throw that.
   */
  asIs(ref: ComputerRef): Promise<HostClient>;
  /**
   * Like `asIs`, for requests to the computer itself. Also throws 409 `COMPUTER_PAUSED`, since a paused computer never
   * answers.
   */
  unpaused(ref: ComputerRef): Promise<HostClient>;
  /**
   * For Atrium's own programs on its files (`HostClient.own`): in the computer while it runs, otherwise beside it
   * without network. They do not keep the computer awake, and users do not see them. Throws 409 `COMPUTER_NOT_RUNNING`
   * if it was never used, `COMPUTER_PAUSED`, and 429 or 503 `FILES_BUSY`.
   */
  work(ref: ComputerRef): Promise<HostClient>;
  /** Waits briefly for a wake that is under way, because a computer answers before it is shown as running. */
  settled(ref: ComputerRef): Promise<void>;
  /**
   * Only while the computer runs, for requests that must not wake it. Otherwise throws 409 `COMPUTER_NOT_RUNNING`, or
   * 503 `COMPUTER_WAKES` if it is about to run.
   */
  running(ref: ComputerRef): Promise<HostClient>;
}

/** A host that this process can reach: its own, or another by its address. */
export interface LiveHost {
  /** A client of a running computer. */
  client(computerId: string): HostClient;
  /** A client of a computer's files and logs, whether it runs or not. */
  files(computerId: string): Promise<HostClient>;
  /** Like `files`, but Atrium's own processes may be started. They have no network if the computer does not run. */
  work(computerId: string): Promise<HostClient>;
  metrics(computerId: string): Promise<ComputerMetrics>;
}

/** Finds a host. Throws 503 `HOST_LOST` if there is none. */
export type HostOf = (hostId: string) => Promise<LiveHost>;
