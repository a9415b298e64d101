import type { SpaceAccess } from '../../models/identity/members.ts';
import type { Access } from './auth/access.ts';
import type { Caller } from './auth/caller.ts';
import type { Operation } from './contract.ts';
import type { Handshake } from './upgrade.ts';

declare global {
  namespace Express {
    interface Request {
      /** The operation of the contract that this request is for. */
      operation?: Operation;
      /** The parameters of its path: Express forgets its own when a route is left. */
      pathParams?: Record<string, string>;
      /** The raw body, where a signature covers it. */
      rawBody?: Buffer;
      /** A body was announced, and had no bytes. */
      hasEmptyBody?: boolean;
      /** Set once the credential has been checked; read it with `callerOf`. */
      caller?: Caller;
      /** Who may call the operation. */
      access?: Access;
      /** The space of the path, where the table names a role for it; read it with `spaceOf`. */
      spaceAccess?: SpaceAccess;
      /** The socket of a request that wants to be a WebSocket. */
      handshake?: Handshake;
      /** How the WebSocket that it became was closed. */
      closeCode?: number;
      /** Why the credential was refused: the validator would flatten it to a status. */
      authFailure?: unknown;
    }
  }
}
