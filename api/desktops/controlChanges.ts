import { EventEmitter } from 'node:events';

/** Tells the open pages of this process, by the session's id, that its control has changed hands. */
export const controlChanges = new EventEmitter().setMaxListeners(0);
