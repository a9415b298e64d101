import { completeUpload } from '../../workflows/drive/completeUpload.ts';
import { purgeTrash } from '../../workflows/drive/purgeTrash.ts';
import { type OperationDefinition, start } from './operation.ts';
import { staysDeleted } from './reasons.ts';

export const driveOperations = {
  purgeItem: {
    scope: 'drive:write',
    start: ({ id, subjectId, spaceId }, { temporal: { heartbeatTimeoutMs } }) =>
      start(purgeTrash, { operationId: id, spaceId: spaceId ?? '', itemId: subjectId, heartbeatTimeoutMs }),
    notCancellable: staysDeleted,
    failures: {},
  },
  emptyTrash: {
    scope: 'drive:write',
    start: ({ id, spaceId }, { temporal: { heartbeatTimeoutMs } }) =>
      start(purgeTrash, { operationId: id, spaceId: spaceId ?? '', itemId: null, heartbeatTimeoutMs }),
    notCancellable: staysDeleted,
    failures: {},
  },
  completeUpload: {
    scope: 'drive:write',
    start: ({ id, subjectId }, { temporal: { heartbeatTimeoutMs } }) =>
      start(completeUpload, { operationId: id, uploadId: subjectId, heartbeatTimeoutMs }),
    failures: {
      ETAG_MISMATCH: 'preconditionFailed',
      INVALID_NAME: 'unprocessable',
      NAME_TAKEN: 'conflict',
      NOT_A_FOLDER: 'conflict',
      NOT_FOUND: 'notFound',
      TOO_DEEP: 'unprocessable',
      UPLOAD_EXPIRED: 'gone',
      UPLOAD_INCOMPLETE: 'conflict',
    },
  },
} satisfies Record<string, OperationDefinition>;
