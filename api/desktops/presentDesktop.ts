import { type DesktopSession, endCodeOf, endDetailOf } from '../../models/desktops/session.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';

export function presentDesktop(session: DesktopSession): AnswerOf<'getDesktopSession'> {
  const { id, spaceId, computerId, width, height, display, createdBy, createdAt, endedAt } = session;
  const code = endCodeOf(session);
  return {
    id,
    spaceId,
    computerId,
    status: code !== undefined ? 'ended' : session.status === 'starting' ? 'starting' : 'running',
    resolution: `${width}x${height}`,
    display: `:${display}`,
    viewUrl: null,
    expiresAt: null,
    end: code === undefined ? null : { code, detail: endDetailOf(code) },
    createdBy,
    createdAt: time(createdAt),
    endedAt: endedAt === null ? null : time(endedAt),
  };
}
