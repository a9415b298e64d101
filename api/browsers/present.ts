import { downloadsPath } from '../../models/browsers/downloads.ts';
import type { BrowserProfile } from '../../models/browsers/profile.ts';
import { type BrowserSession, endCodeOf, endDetailOf, urlErrorOf } from '../../models/browsers/session.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';

type Shown = AnswerOf<'getBrowserSession'>;

export function presentProfile(profile: BrowserProfile, live: BrowserSession[]): AnswerOf<'getBrowserProfile'> {
  const { id, spaceId, name, computerId, savedAt, sizeBytes, createdBy, createdAt } = profile;
  return {
    id,
    spaceId,
    name,
    computerId,
    savedAt: timeOrNull(savedAt),
    savedBytes: sizeBytes,
    sessions: live.filter(({ profileId }) => profileId === id).map(presentBrowser),
    createdBy,
    createdAt: time(createdAt),
  };
}

export function presentBrowser(session: BrowserSession): Shown {
  const { id, spaceId, profileId, computerId, desktopSessionId, width, height, createdBy, createdAt } = session;
  const code = endCodeOf(session);
  return {
    id,
    spaceId,
    profileId,
    computerId,
    desktopSessionId,
    status: statusOf(session),
    resolution: `${width}x${height}`,
    urlError: urlErrorOf(session),
    end: code === undefined ? null : { code, detail: endDetailOf(code) },
    save: { state: saveOf(session), code: session.saveCode, savedAt: timeOrNull(session.savedAt) },
    downloads: {
      folder: downloadsPath,
      files: session.downloadedFiles,
      bytes: session.downloadedBytes,
      code: session.downloadCode,
    },
    createdBy,
    createdAt: time(createdAt),
    endedAt: timeOrNull(session.endedAt),
  };
}

function statusOf(session: BrowserSession): Shown['status'] {
  if (session.status === 'ended') return 'ended';
  if (endCodeOf(session) !== undefined) return 'ending';
  return session.status === 'starting' ? 'starting' : 'running';
}

function saveOf({ status, profileId, wasStarted, savedAt }: BrowserSession): Shown['save']['state'] {
  if (profileId === null) return 'none';
  if (savedAt !== null) return 'saved';
  if (status !== 'ended') return 'pending';
  return wasStarted ? 'failed' : 'none';
}

function timeOrNull(at: Date | null): string | null {
  return at === null ? null : time(at);
}
