import type { SpaceAccess } from '../../models/identity/members.ts';
import type { Access } from './auth/access.ts';
import type { Caller } from './auth/caller.ts';
import type { Operation } from './contract.ts';
import type { Handshake } from './upgrade.ts';

declare global {
  namespace Express {
    interface Request {
      operation?: Operation;
      /** The parameters of the path. Express drops its own when a route is left. */
      pathParams?: Record<string, string>;
      /** The raw body, kept when a signature covers it. */
      rawBody?: Buffer;
      /** Set when the body was read and had no bytes. */
      hasEmptyBody?: boolean;
      /** Set while a large body is in memory. Frees its place, like the end of the answer. */
      leaveBodyPlace?: () => void;
      /** Set once the credential has been checked. Read it with `callerOf`. */
      caller?: Caller;
      /** Who may call the operation. */
      access?: Access;
      /** The space of the path, set when the access table names a role. Read it with `spaceOf`. */
      spaceAccess?: SpaceAccess;
      /** The socket of a request for a WebSocket. */
      handshake?: Handshake;
      /** The close code of the WebSocket that the request became. */
      closeCode?: number;
      /** Why the credential was refused. The validator would reduce this to a status. */
      authFailure?: unknown;
    }
  }
}
