/** The workflows that workers run. A name here is its wire name: renaming one is a breaking change. */
export { purgeDeleted } from './purgeDeleted.ts';
export { runChatTurn } from './runChatTurn.ts';
export { sweep } from './sweep.ts';
