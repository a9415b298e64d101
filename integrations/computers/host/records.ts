import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { makeFolderDurablySync, writeDurablySync } from '../../../disk/durable.ts';
import type { DriveMount } from '../drives/daemon.ts';
import type { HolderEnd } from '../protocol/holderSpec.ts';
import { ifThere } from '../system/ifThere.ts';
import type { Stamp } from '../system/stamps.ts';
import type { BaseName, ComputerLimits, ComputerSpec } from '../types.ts';
import { computerLayout, type HostLayout, isComputerId } from './layout.ts';

/** A host's record of one computer. Only the host writes it. */
export interface ComputerRecord {
  computerId: string;
  /** Null if the computer shares our user. With a base, the first user of its range, who is root inside. */
  uid: number | null;
  /** Set if its volume is a root file system. */
  base?: BaseName;
  limits: ComputerLimits;
  /** Set for a copy that was never started. */
  spaceId?: string;
  /** The last start. Null if it was never started. */
  run: ComputerRun | null;
  removing?: boolean;
  /** Set while its home is filled from saves. Until that is done, this host does not have the computer. */
  filling?: boolean;
  /** Users that it was given for a home that is still being filled. */
  nextUid?: number | null;
  /**
   * Set while its home is replaced by the unfinished volume beside it, which is whole. What is recorded holds for that
   * already, and this was its user before. Until that is done, this host does not have the computer.
   */
  swap?: { formerUid: number | null };
}

export interface ComputerRun {
  spec: ComputerSpec;
  /** `starting` while no host works on the computer means that the start was cut off. */
  phase: 'starting' | 'running' | 'ended';
  bootId: string;
  holder: Stamp | null;
  /** bwrap's process, and the first process inside. */
  sandbox: { monitor: Stamp; init: Stamp } | null;
  startedAt: string | null;
  pausedAt: string | null;
  end: HolderEnd | null;
  /** How the drive of its space is mounted for it. Undefined if it does not have the drive. */
  drive?: DriveMount;
}

export function readRecord(layout: HostLayout, computerId: string): ComputerRecord | undefined {
  const text = ifThere(() => readFileSync(computerLayout(layout, computerId).record, 'utf8'));
  return text === undefined ? undefined : (JSON.parse(text) as ComputerRecord);
}

/** What stays of a record from one start to the next. */
export function lastingOf({ computerId, uid, base, nextUid }: ComputerRecord) {
  return { computerId, uid, ...(base && { base }), ...(nextUid !== undefined && { nextUid }) };
}

/** Whether this host has the computer, with a whole home. */
export function isHosted({ removing, filling, swap }: ComputerRecord): boolean {
  return removing !== true && filling !== true && swap === undefined;
}

/** Replaces the whole record: a kill or a power cut leaves the old or the new one. */
export function writeRecord(layout: HostLayout, record: ComputerRecord): void {
  const { dir, record: file } = computerLayout(layout, record.computerId);
  makeFolderDurablySync(dir);
  writeDurablySync(file, JSON.stringify(record));
}

/** The ids of the computers with a folder. One without a record has not been made yet, or is being removed. */
export function listComputerIds(layout: HostLayout): string[] {
  return (ifThere(() => readdirSync(layout.dir)) ?? []).filter(isComputerId);
}

export function listRecords(layout: HostLayout): ComputerRecord[] {
  return listComputerIds(layout).flatMap((computerId) => readRecord(layout, computerId) ?? []);
}

export function removeComputerDir(layout: HostLayout, computerId: string): void {
  const { run, dir, egressDraft, driveSocket } = computerLayout(layout, computerId);
  for (const path of [egressDraft, driveSocket, run, dir]) rmSync(path, { recursive: true, force: true });
}
