import { DomainError } from '../../../../base/errors.ts';
import type { FileEntry } from '../../types.ts';

/** Checks the agent's answers about files. They come from the tenant's sandbox, and parts of them go into headers. */
export function fileHeadOf(answer: unknown) {
  const { size, mode, modifiedAt, etag, start, end } = objectOf(answer);
  const head = { size: countOf(size), mode: modeOf(mode), modifiedAt: timeOf(modifiedAt), etag: etagOf(etag) };
  const part = { start: countOf(start), end: countOf(end) };
  if (part.start > part.end || part.end > head.size) throw invalid();
  return { ...head, ...part };
}

export function writtenOf(answer: unknown) {
  const { size, etag, isNew } = objectOf(answer);
  return { size: countOf(size), etag: etagOf(etag), isNew: isNew === true };
}

export function entryOf(answer: unknown): FileEntry & { etag: string } {
  const { name, type, size, mode, modifiedAt, target, nameBytes, etag } = objectOf(answer);
  if (typeof type !== 'string' || !types.has(type)) throw invalid();
  return {
    name: textOf(name, 1_024),
    type: type as FileEntry['type'],
    size: countOf(size),
    mode: modeOf(mode),
    modifiedAt: timeOf(modifiedAt),
    ...(target !== undefined && { target: textOf(target, 8_192) }),
    ...(nameBytes !== undefined && { nameBytes: textOf(nameBytes, 1_024) }),
    etag: etagOf(etag),
  };
}

export function pageOf(answer: unknown) {
  const { entries, nextCursor } = objectOf(answer);
  if (!Array.isArray(entries) || entries.length > 1_000) throw invalid();
  return { entries: entries.map(entryOf), nextCursor: nextCursor === null ? null : textOf(nextCursor, 1_024) };
}

const types = new Set(['file', 'directory', 'symlink', 'other']);

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw invalid();
  return value as Record<string, unknown>;
}

function countOf(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalid();
  return value as number;
}

function modeOf(value: unknown): number {
  const mode = countOf(value);
  if (mode > 0o7777) throw invalid();
  return mode;
}

function timeOf(value: unknown): string {
  const text = textOf(value, 40);
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) || Number.isNaN(Date.parse(text))) throw invalid();
  return text;
}

function etagOf(value: unknown): string {
  const text = textOf(value, 100);
  if (!/^"[a-z0-9-]+"$/.test(text)) throw invalid();
  return text;
}

function textOf(value: unknown, max: number): string {
  if (typeof value !== 'string' || value.length > max) throw invalid();
  return value;
}

function invalid(): DomainError {
  return new DomainError('upstream', 'COMPUTER_FAILED', 'The computer could not do this.');
}
