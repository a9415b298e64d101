export { stopTestStack as default } from './testStack.ts';
