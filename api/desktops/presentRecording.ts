import { filePath } from '../../integrations/desktops/recording/scripts.ts';
import { type DesktopRecording, failureDetailOf, recordingEndDetail } from '../../models/desktops/recording.ts';
import { type DesktopSession, endCodeOf, endDetailOf } from '../../models/desktops/session.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';

/** A recording ends with its session, even if its own row does not say so yet. */
export function presentRecording(
  recording: DesktopRecording,
  session: DesktopSession,
): AnswerOf<'getDesktopRecording'> {
  const { id, spaceId, computerId, sessionId, name, width, height, framesPerSecond, maxSeconds, maxBytes } = recording;
  const { itemId, size, durationMs, createdBy, createdAt, endedAt, errorCode, hasFile } = recording;
  const sessionEnd = endCodeOf(session);
  const status = statusOf(recording, sessionEnd !== undefined);
  const isOver = status !== 'starting' && status !== 'recording';
  const end = recording.endCode ?? (isOver ? sessionEnd : undefined);
  return {
    id,
    spaceId,
    computerId,
    sessionId,
    status,
    name,
    resolution: `${width}x${height}`,
    framesPerSecond,
    maxSeconds,
    maxBytes,
    end: end === undefined ? null : { code: end, detail: recordingEndDetail(end) ?? endDetailOf(end) },
    error: errorCode === null ? null : { code: errorCode, detail: failureDetailOf(errorCode) },
    itemId,
    size,
    durationSeconds: durationMs === null ? null : durationMs / 1_000,
    computerPath: status === 'failed' && hasFile ? filePath(recording) : null,
    createdBy,
    createdAt: time(createdAt),
    endedAt: endedAt === null ? null : time(endedAt),
  };
}

function statusOf({ status }: DesktopRecording, isSessionOver: boolean): AnswerOf<'getDesktopRecording'>['status'] {
  if (status === 'stopping') return 'saving';
  if (status === 'discarding') return 'discarded';
  return isSessionOver && (status === 'starting' || status === 'recording') ? 'saving' : status;
}
